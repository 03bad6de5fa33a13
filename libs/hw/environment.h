#pragma once
// The environment card of a run: what the machine is and how it was set up, as JSON.

#include <string>
#include <vector>

#include "base/json_fwd.h"
#include "hw/device.h"

namespace llmprof::hw {

// CPU model, cores, siblings, clocks, governor, caches, memory, kernel, distribution, GPUs and driver, versions of
// llmprof and the libraries it uses, container, relevant variables (OMP_NUM_THREADS, CUDA_VISIBLE_DEVICES…; values
// redacted).
base::Json environment_card(const std::string& root = "/");

// argv with secrets replaced by "***": --api-key=X, --token X, FOO_TOKEN=X, URLs with passwords, hf_…/sk-… strings.
std::vector<std::string> redact(const std::vector<std::string>& arguments);

}  // namespace llmprof::hw
