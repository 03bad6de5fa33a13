#pragma once
// Small runs whose every number can be derived by hand, for golden tests.

#include <span>
#include <string>
#include <string_view>

#include "base/result.h"

namespace llmprof::traces {

// Writes the run `name` ("tiny_decode", "tiny_train", "plain_gemms", "unnamed", "steps_only", "sampled", "nothing",
// "gpu_decode", "gpu_graph", "gpu_unnamed", "host_memory", "bare_gpu", "imported", "totals", "telemetry",
// "counted") into `folder`.
Result<void> write_trace(std::string_view name, const std::string& folder);

Result<void> write_tiny_decode(const std::string& folder);
Result<void> write_tiny_train(const std::string& folder);
Result<void> write_unnamed(const std::string& folder);
Result<void> write_steps_only(const std::string& folder);
Result<void> write_plain_gemms(const std::string& folder);
Result<void> write_sampled(const std::string& folder);
Result<void> write_nothing(const std::string& folder);
Result<void> write_gpu_decode(const std::string& folder);
Result<void> write_gpu_graph(const std::string& folder);
Result<void> write_gpu_unnamed(const std::string& folder);
Result<void> write_host_memory(const std::string& folder);
Result<void> write_bare_gpu(const std::string& folder);
Result<void> write_imported(const std::string& folder);
Result<void> write_totals(const std::string& folder);
Result<void> write_telemetry(const std::string& folder);
Result<void> write_counted(const std::string& folder);
Result<void> write_hostile(const std::string& folder);

// 40 names that try to become code or markup where they are shown.
std::span<const std::string_view> hostile_names();

}  // namespace llmprof::traces
