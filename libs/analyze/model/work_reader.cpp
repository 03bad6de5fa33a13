#include "analyze/model/work_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "analyze/questions.h"

namespace llmprof::analyze {

namespace {

// Kernels read at once: their columns and rows take about 60 MB, which allocators give again to the next block.
constexpr std::int64_t kBlockKernels = 250'000;

using KernelColumns = std::vector<std::vector<std::int64_t>*>;  // as sql/pass_kernels.sql names them

void sort_by_begin(const std::vector<std::int64_t>& begin_ns, const KernelColumns& columns) {
  if (std::is_sorted(begin_ns.begin(), begin_ns.end())) return;
  std::vector<std::uint32_t> order(begin_ns.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<std::uint32_t>(i);
  std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return begin_ns[a] < begin_ns[b]; });
  for (auto* column : columns) {
    std::vector<std::int64_t> sorted(order.size());
    for (std::size_t i = 0; i < order.size(); ++i) sorted[i] = (*column)[order[i]];
    *column = std::move(sorted);
  }
}

Result<trace::Columns> read_slice(const trace::Run& run, std::string_view question, Window slice) {
  return run.columns(
      fmt::format("{}WHERE begin_ns >= {} AND begin_ns < {}", sql_of(question), slice.begin_ns, slice.end_ns));
}

Result<Kernels> read_kernels(const trace::Run& run, Window slice, WorkReader::With with) {
  constexpr std::array<std::string_view, 3> kQuestions{"sql/pass_kernel_ends", "sql/pass_kernels",
                                                       "sql/pass_kernel_sums"};
  LLMPROF_LET(trace::Columns columns, read_slice(run, kQuestions[static_cast<std::size_t>(with)], slice));
  Kernels kernels;
  KernelColumns targets{&kernels.begin_ns, &kernels.end_ns, &kernels.thread_id, &kernels.launch_begin_ns,
                        &kernels.device_id};
  if (with != WorkReader::With::kTimes)
    targets.insert(targets.end(), {&kernels.id, &kernels.gemm_id, &kernels.graph_node_id});
  if (with == WorkReader::With::kAll) {
    targets.insert(targets.end(), {&kernels.launch_end_ns, &kernels.stream, &kernels.graph_launch_id, &kernels.stack_id,
                                   &kernels.name, &kernels.estimated});
  }
  for (std::size_t i = 0; i < targets.size(); ++i) *targets[i] = std::move(columns.values[i]);
  kernels.texts = std::move(columns.names);
  if (with != WorkReader::With::kTimes) sort_by_begin(std::vector(kernels.begin_ns), targets);
  return kernels;
}

Result<GraphLaunches> read_launches(const trace::Run& run, Window slice) {
  LLMPROF_LET(trace::Columns columns,
              run.columns(fmt::format("{}WHERE begin_ns >= {} AND begin_ns < {} ORDER BY begin_ns, id",
                                      sql_of("sql/pass_launches"), slice.begin_ns, slice.end_ns)));
  GraphLaunches launches;
  const std::array targets{&launches.id,        &launches.begin_ns,        &launches.end_ns,
                           &launches.thread_id, &launches.launch_begin_ns, &launches.device_id,
                           &launches.graph,     &launches.nodes_recorded};
  for (std::size_t i = 0; i < targets.size(); ++i) *targets[i] = std::move(columns.values[i]);
  return launches;
}

Result<WorkBlock> read_block(const trace::Run& run, Window work, WorkReader::With with, bool first) {
  WorkBlock block;
  LLMPROF_LET(block.kernels, read_kernels(run, work, with));
  LLMPROF_LET(block.launches, read_launches(run, work));
  if (with == WorkReader::With::kAll) {
    // What is not a kernel may begin before the first of them.
    const Window others{first ? INT64_MIN + 1 : work.begin_ns, work.end_ns};
    LLMPROF_LET(block.others, read_copies_and_waits(run, others));
  }
  return block;
}

}  // namespace

// At most kBlockKernels in each, but for a single slice that holds more.
Result<std::vector<Window>> work_blocks(const trace::Run& run) {
  LLMPROF_LET(const trace::ResultTable slices, ask(run, "sql/pass_kernel_slices"));
  std::vector<Window> blocks;
  std::int64_t filled = 0;
  for (const auto& row : slices.rows) {
    const std::int64_t begin = row[0].as_int();
    const std::int64_t kernels = row[1].as_int();
    if (blocks.empty() || filled + kernels > kBlockKernels) {
      if (!blocks.empty()) blocks.back().end_ns = begin;
      blocks.push_back({begin, INT64_MAX});
      filled = 0;
    }
    filled += kernels;
  }
  return blocks;
}

Result<WorkBlock> WorkReader::take() {
  if (begun_ == 0) read_next();
  Result<WorkBlock> block = next_.get();
  if (begun_ < blocks_.size()) read_next();
  return block;
}

void WorkReader::read_next() {
  const bool first = begun_ == 0;
  // Either policy: where no thread can be had, take() reads.
  next_ = std::async(
      std::launch::async | std::launch::deferred,
      [run = run_, work = blocks_[begun_], with = with_, first] { return read_block(*run, work, with, first); });
  ++begun_;
}

}  // namespace llmprof::analyze
