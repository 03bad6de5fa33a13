#pragma once
// Where CUDA's libraries may lie, beside what the loader finds itself: $CUDA_HOME, /usr/local/cuda*, and the packages of the
// python3 on PATH (PyTorch brings its own).

#include <string>
#include <string_view>
#include <vector>

namespace llmprof::base {

// Full paths to try for "libcudnn.so.9", most wanted first; the bare name, for the loader's own search, leads.
std::vector<std::string> cuda_library_candidates(std::string_view library);

}  // namespace llmprof::base
