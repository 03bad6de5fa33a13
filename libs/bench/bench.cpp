#include "bench/bench.h"

#include <fmt/format.h>

#include <charconv>

#include "bench/cpu_bench.h"
#include "bench/cuda/context.h"
#include "bench/cuda_bench.h"

namespace llmprof::bench {
namespace {

Error unknown_device(const std::string& device) {
  return {ErrorCode::kUsage, fmt::format("cannot measure on device {}", device), "cpu, cuda, cuda:0, cuda:1, …"};
}

// The number behind "cuda:".
Result<int> gpu_index(const std::string& device) {
  constexpr std::string_view kPrefix = "cuda:";
  if (device == "cuda") return 0;
  if (!device.starts_with(kPrefix)) return unknown_device(device);
  const char *begin = device.data() + kPrefix.size(), *end = device.data() + device.size();
  int index = 0;
  const auto [stop, problem] = std::from_chars(begin, end, index);
  if (problem != std::errc{} || stop != end || index < 0) return unknown_device(device);
  return index;
}

bool has_gpu() {
  const Result<int> count = cuda::Context::device_count();
  return count && *count > 0;
}

}  // namespace

std::string_view status_name(Status status) {
  switch (status) {
    case Status::kMeasured:
      return "measured";
    case Status::kSkipped:
      return "skipped";
    case Status::kFailed:
      return "failed";
  }
  return "";
}

Result<std::unique_ptr<Bench>> open_bench(const std::string& device, const BenchOptions& options) {
  if (device == "cpu" || (device.empty() && !has_gpu())) return open_cpu_bench(options);
  LLMPROF_LET(const int index, gpu_index(device.empty() ? "cuda" : device));
  return open_cuda_bench(index, options);
}

}  // namespace llmprof::bench
