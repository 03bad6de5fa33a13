#include "record/log/cuda_parts.h"

#include <algorithm>
#include <cstring>

#include "trace/run_writer.h"

namespace llmprof::record {

void CudaEstimates::Mean::add(std::int64_t sample) {
  constexpr double kNewest = 32;
  count = std::min(count + 1, kNewest);
  value += (static_cast<double>(sample) - value) / count;
}

void CudaEstimates::launched(const CudaLaunch& launch, bool noted) {
  places_[launch.correlation] = first_ + waiting_.size();
  waiting_.push_back({launch, noted, {}});
  newest_ns_ = std::max(newest_ns_, launch.begin_ns);
}

void CudaEstimates::ran(const CudaLaunch& launch, const trace::KernelRow& row) {
  const auto place = places_.find(launch.correlation);
  if (place != places_.end()) waiting_[place->second - first_].row = row;
}

std::optional<CudaEstimates::Estimate> CudaEstimates::next(std::int64_t before_ns) {
  while (!waiting_.empty()) {
    const Waiting& oldest = waiting_.front();
    const bool is_due = oldest.row || oldest.launch.begin_ns < newest_ns_ - kPatienceNs ||
                        oldest.launch.begin_ns < before_ns || waiting_.size() > kMostWaiting;
    if (!is_due) return std::nullopt;
    const Waiting waiting = oldest;
    places_.erase(waiting.launch.correlation);
    waiting_.pop_front();
    ++first_;
    if (waiting.row) {
      learn(waiting.launch, *waiting.row);
    } else if (waiting.noted) {
      return Estimate{waiting.launch, estimate(waiting.launch)};
    }
  }
  return std::nullopt;
}

void CudaEstimates::learn(const CudaLaunch& launch, const trace::KernelRow& row) {
  Known& known = known_[launch.number];
  std::int64_t& ended_ns = ended_ns_[stream_of(row)];
  known.row = row;
  known.duration.add(row.end_ns - row.begin_ns);
  if (ended_ns <= launch.begin_ns) {
    known.after_launch.add(row.begin_ns - launch.begin_ns);
  } else if (row.begin_ns >= ended_ns) {
    known.after_last.add(row.begin_ns - ended_ns);
  }
  ended_ns = std::max(ended_ns, row.end_ns);
}

std::optional<trace::KernelRow> CudaEstimates::estimate(const CudaLaunch& launch) {
  const auto found = known_.find(launch.number);
  if (found == known_.end()) return std::nullopt;
  const Known& known = found->second;
  trace::KernelRow row = known.row;
  std::int64_t& ended_ns = ended_ns_[stream_of(row)];
  row.begin_ns = launch.begin_ns + std::max<std::int64_t>(known.after_launch.rounded(), 0);
  if (ended_ns > launch.begin_ns) row.begin_ns = std::max(row.begin_ns, ended_ns + known.after_last.rounded());
  row.end_ns = row.begin_ns + known.duration.rounded();
  row.estimated = true;
  ended_ns = std::max(ended_ns, row.end_ns);
  return row;
}

namespace {

std::int32_t number(std::uint64_t value) {
  return static_cast<std::int32_t>(std::min<std::uint64_t>(value, INT32_MAX));
}

// All bytes of a shape count when it is compared.
template <class Shape>
Shape blank() {
  Shape shape;
  std::memset(static_cast<void*>(&shape), 0, sizeof shape);
  return shape;
}

}  // namespace

KernelShape to_shape(const wire::KernelShapeRecord& record, LogNames& names) {
  auto shape = blank<KernelShape>();
  shape.name = names.gpu_kernel_name(record.name);
  shape.grid_x = number(record.grid_x);
  shape.grid_y = number(record.grid_y);
  shape.grid_z = number(record.grid_z);
  shape.block_x = record.block_x;
  shape.block_y = record.block_y;
  shape.block_z = record.block_z;
  shape.registers = record.registers;
  shape.shared_bytes = number(std::uint64_t{record.static_shared_bytes} + record.dynamic_shared_bytes);
  return shape;
}

GemmShape to_shape(const wire::GemmShapeRecord& record, LogNames& names) {
  auto shape = blank<GemmShape>();
  shape.function = names.name(record.function);
  shape.library = names.name(record.library);
  shape.algorithm = names.name(record.algorithm);
  shape.epilogue = names.name(record.epilogue);
  shape.scaling = names.name(record.scaling);
  shape.type_a = names.name(record.type_a);
  shape.type_b = names.name(record.type_b);
  shape.type_c = names.name(record.type_c);
  shape.compute_type = names.name(record.compute_type);
  shape.layout = record.layout;
  shape.transpose_a = record.trans_a;
  shape.transpose_b = record.trans_b;
  return shape;
}

CudaGemms::CudaGemms(trace::RunWriter& writer) : writer_(writer), layouts_(writer.strings()) {}

void CudaGemms::add(trace::Id id, const wire::GpuGemmRecord& record, const GemmShape* shape, trace::Id thread_id,
                    std::uint64_t arrived) {
  Call call;
  call.arrived = arrived;
  trace::GemmRow& row = call.row;
  row.id = id;
  row.begin_ns = static_cast<std::int64_t>(record.begin_ns);
  row.end_ns = static_cast<std::int64_t>(record.end_ns);
  row.thread_id = thread_id;
  row.m = record.m;
  row.n = record.n;
  row.k = record.k;
  row.batch = record.batch;
  if (shape != nullptr) {
    row.library = shape->library;
    row.function = shape->function;
    row.type_a = shape->type_a;
    row.type_b = shape->type_b;
    row.type_c = shape->type_c;
    layouts_.set(row, shape->layout, shape->transpose_a, shape->transpose_b);
    row.epilogue = shape->epilogue;
    row.algorithm = shape->algorithm;
    row.compute_type = shape->compute_type;
    row.scaling = shape->scaling;
  }
  threads_[thread_id].push_back(first_ + calls_.size());
  calls_.push_back(call);
}

void CudaGemms::write_oldest() {
  const trace::GemmRow& row = calls_.front().row;
  writer_.add(row);
  const auto thread = threads_.find(row.thread_id);
  thread->second.pop_front();
  if (thread->second.empty()) threads_.erase(thread);
  calls_.pop_front();
  ++first_;
}

void CudaGemms::write_all() {
  while (!calls_.empty()) write_oldest();
}

CudaGemms::Call* CudaGemms::at(trace::Id thread_id, std::int64_t ts_ns) {
  constexpr int kDeepest = 4;  // calls inside calls
  const auto thread = threads_.find(thread_id);
  if (thread == threads_.end()) return nullptr;
  const Calls& calls = thread->second;
  auto found = std::lower_bound(calls.begin(), calls.end(), ts_ns, [&](std::uint64_t number, std::int64_t time) {
    return call(number).row.end_ns < time;
  });
  for (int i = 0; i < kDeepest && found != calls.end(); ++i, ++found) {
    if (call(*found).row.begin_ns <= ts_ns) return &call(*found);
  }
  return nullptr;
}

void CudaGemms::ran(Call& call, trace::Id kernel_id, std::int64_t duration_ns) {
  if (duration_ns <= call.kernel_ns) return;
  call.kernel_ns = duration_ns;
  call.row.kernel_id = kernel_id;
}

CudaMemory::CudaMemory(trace::RunWriter& writer, trace::Id process_id, trace::Id& next_id)
    : writer_(writer), process_id_(process_id), next_id_(next_id) {
  constexpr const char* kKinds[] = {"device", "pinned", "managed", "pool", "mapped"};
  for (std::size_t i = 0; i < std::size(kinds_); ++i) kinds_[i] = writer.strings().intern(kKinds[i]);
}

void CudaMemory::take(const wire::DeviceMemoryRecord& record, trace::OptionalId device_id, trace::Id thread_id,
                      trace::OptionalId stack_id) {
  Event event;
  event.frees = record.op == wire::MemoryOp::kFree;
  event.row.begin_ns = static_cast<std::int64_t>(record.ts_ns);
  event.row.bytes = static_cast<std::int64_t>(std::min<std::uint64_t>(record.bytes, INT64_MAX / 2));
  event.row.address = static_cast<std::int64_t>(record.address);
  event.row.device_id = device_id;
  event.row.stack_id = stack_id;
  event.row.kind = kinds_[std::min<std::size_t>(static_cast<std::size_t>(record.kind), std::size(kinds_) - 1)];
  event.row.process_id = process_id_;
  event.row.thread_id = thread_id;
  waiting_.push_back(event);
  if (waiting_.size() == kWaiting) settle(kWaiting / 2);
}

void CudaMemory::settle(std::size_t count) {
  std::stable_sort(waiting_.begin(), waiting_.end(),
                   [](const Event& a, const Event& b) { return a.row.begin_ns < b.row.begin_ns; });
  for (std::size_t i = 0; i < count; ++i) {
    const Event& event = waiting_[i];
    event.frees ? free(*event.row.address, event.row.begin_ns) : allocate(event.row);
  }
  waiting_.erase(waiting_.begin(), waiting_.begin() + static_cast<std::ptrdiff_t>(count));
}

// An address that is handed out again was freed in between, whether or not that was seen.
void CudaMemory::allocate(const trace::AllocationRow& row) {
  free(*row.address, row.begin_ns);
  trace::AllocationRow numbered = row;
  numbered.id = next_id_++;
  if (open_.size() == kMostOpen) return writer_.add(numbered);
  open_[*row.address] = numbered;
}

// What was allocated before the recording began is not known.
void CudaMemory::free(std::int64_t address, std::int64_t ts_ns) {
  const auto found = open_.find(address);
  if (found == open_.end()) return;
  found->second.end_ns = ts_ns;
  writer_.add(found->second);
  open_.erase(found);
}

void CudaMemory::finish() {
  settle(waiting_.size());
  for (const auto& [address, row] : open_) writer_.add(row);
  open_.clear();
}

}  // namespace llmprof::record
