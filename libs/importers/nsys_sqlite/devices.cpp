#include "importers/nsys_sqlite/devices.h"

#include <fmt/format.h>

namespace llmprof::importers::nsys {
namespace {

constexpr std::size_t kMost = 4096;

trace::DeviceRow to_row(Rows& rows, Sink& sink, const std::string& driver) {
  const auto name_of = [&](int column) {
    const auto text = rows.text(column);
    return text && !text->empty() ? sink.name(*text) : trace::Name{};
  };
  trace::DeviceRow row;
  row.id = sink.new_id();
  row.kind = sink.name("gpu");
  row.name = name_of(1);
  row.chip = name_of(2);
  row.units = rows.integer_or(3, 0);
  row.memory_bytes = rows.integer_or(4, 0);
  row.cache_bytes = rows.integer_or(5, 0);
  if (const auto hertz = rows.integer(6); hertz && *hertz > 0) row.clock_mhz = static_cast<double>(*hertz) / 1e6;
  if (!driver.empty()) row.driver = sink.name(driver);
  if (const auto uuid = rows.text(7); uuid && !uuid->empty())
    row.uuid = sink.name(uuid->starts_with("GPU-") ? std::string(*uuid) : "GPU-" + std::string(*uuid));
  row.ordinal = rows.integer(0);
  return row;
}

}  // namespace

Result<void> Devices::read(const std::string& driver) {
  LLMPROF_LET(Rows gpus, database_.rows("TARGET_INFO_GPU", {"id", "name", "chipName", "smCount", "totalMemory",
                                                            "l2CacheSize", "clockRate", "uuid", "cuDevice"}));
  while (gpus.next()) {
    const auto gpu = gpus.integer(0);
    if (!gpu || by_gpu_.size() >= kMost || by_gpu_.contains(*gpu)) continue;
    const trace::DeviceRow row = to_row(gpus, database_.sink(), driver);
    by_gpu_[*gpu] = row.id;
    if (const auto ordinal = gpus.integer(8)) gpu_of_ordinal_.try_emplace(*ordinal, *gpu);
    database_.sink().add(row);
  }
  LLMPROF_TRY(gpus.finish());
  LLMPROF_LET(Rows pairs, database_.rows("TARGET_INFO_CUDA_DEVICE", {"gpuId", "cudaId", "pid"}));
  while (pairs.next() && gpu_of_cuda_.size() < kMost) {
    const auto gpu = pairs.integer(0), ordinal = pairs.integer(1), pid = pairs.integer(2);
    if (gpu && ordinal && pid) gpu_of_cuda_[{*pid, *ordinal}] = *gpu;
  }
  return pairs.finish();
}

trace::Id Devices::of_cuda(std::int64_t pid, std::int64_t cuda_ordinal) {
  if (pid == last_pid_ && cuda_ordinal == last_ordinal_) return last_id_;
  last_pid_ = pid;
  last_ordinal_ = cuda_ordinal;
  const auto known = gpu_of_cuda_.find({pid, cuda_ordinal});
  if (known != gpu_of_cuda_.end()) return last_id_ = of_gpu(known->second);
  const auto guessed = gpu_of_ordinal_.find(cuda_ordinal);
  return last_id_ = of_gpu(guessed != gpu_of_ordinal_.end() ? guessed->second : cuda_ordinal);
}

trace::Id Devices::of_gpu(std::int64_t gpu) {
  const auto found = by_gpu_.find(gpu);
  return found != by_gpu_.end() ? found->second : add_unknown(gpu);
}

trace::Id Devices::add_unknown(std::int64_t gpu) {
  Sink& sink = database_.sink();
  if (by_gpu_.size() >= kMost) {
    sink.lose(trace::Loss::kInputLimit, 1, "devices beyond 4096");
    return by_gpu_.begin()->second;
  }
  trace::DeviceRow row;
  row.id = sink.new_id();
  row.kind = sink.name("gpu");
  row.name = sink.name(fmt::format("GPU {}", gpu));
  row.ordinal = gpu;
  sink.add(row);
  return by_gpu_[gpu] = row.id;
}

}  // namespace llmprof::importers::nsys
