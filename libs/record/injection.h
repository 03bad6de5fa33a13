#pragma once
// The environment of the recorded program: its own, plus the variables that load our libraries into it and its
// children. What the user set is kept and reported.

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"

namespace llmprof::record {

// Names the capture folder to the injected libraries; also stands in the environment of all the program's children.
inline constexpr const char* kCaptureVariable = "LLMPROF_CAPTURE_DIR";

struct InjectionOptions {
  std::string library_folder;  // holds libllmprof_inject.so and libllmprof_blas.so
  std::string capture_folder;  // absolute
  std::uint64_t max_bytes = 0;
  std::vector<std::pair<std::string, std::string>> window;  // of window_variables()
  bool blas = true;
  bool nvtx = true;
};

struct Injection {
  std::vector<std::string> environment;  // "NAME=value"
  std::vector<std::string> kept;         // "NAME=value" of the user's that concern injection
};

// $LLMPROF_LIBDIR, else ../lib/llmprof beside the folder of this program.
std::string library_folder();

// An error if a library is missing.
Result<void> check_libraries(const InjectionOptions& options);

Injection child_environment(const std::vector<std::string>& environment, const InjectionOptions& options);

// The environment of this process.
std::vector<std::string> own_environment();

}  // namespace llmprof::record
