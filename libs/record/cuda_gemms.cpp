#include "record/cuda_gemms.h"

#include <algorithm>

#include "trace/run_writer.h"

namespace llmprof::record {

CudaGemms::CudaGemms(trace::RunWriter& writer) : writer_(writer) {
  trace::Strings& strings = writer.strings();
  layouts_[0] = strings.intern("column");
  layouts_[1] = strings.intern("row");
  constexpr const char* kTransposes[] = {"n", "t", "c"};
  for (std::size_t i = 0; i < std::size(transposes_); ++i) transposes_[i] = strings.intern(kTransposes[i]);
}

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
    row.layout = layouts_[shape->layout == wire::Layout::kRowMajor ? 1 : 0];
    row.transpose_a = transposes_[std::min<std::size_t>(static_cast<std::size_t>(shape->transpose_a), 2)];
    row.transpose_b = transposes_[std::min<std::size_t>(static_cast<std::size_t>(shape->transpose_b), 2)];
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

}  // namespace llmprof::record
