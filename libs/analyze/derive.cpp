#include "analyze/derive.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <future>
#include <map>
#include <unordered_map>

#include "analyze/match_run.h"
#include "analyze/model_passes.h"
#include "analyze/passes/attribute.h"
#include "analyze/passes/busy.h"
#include "analyze/passes/classify.h"
#include "analyze/passes/range_time.h"
#include "analyze/passes/step_time.h"
#include "analyze/questions.h"
#include "analyze/waterfall_feed.h"
#include "trace/run_writer.h"

namespace llmprof::analyze {
namespace {

// Kernels read at once: their columns and rows take about 140 MB.
constexpr std::int64_t kBlockKernels = 1'000'000;

Result<Ranges> read_ranges(const trace::Run& run) {
  LLMPROF_LET(trace::Columns columns, ask_columns(run, "sql/pass_ranges"));
  Ranges ranges;
  const std::array targets{&ranges.id,    &ranges.begin_ns, &ranges.end_ns, &ranges.thread_id, &ranges.process_id,
                           &ranges.depth, &ranges.name,     &ranges.domain, &ranges.category,  &ranges.payload};
  for (std::size_t i = 0; i < targets.size(); ++i) *targets[i] = std::move(columns.values[i]);
  ranges.texts = std::move(columns.names);
  if (ranges.texts.empty()) ranges.texts.emplace_back();  // code 0 is NULL
  sort_for_sweep(ranges);
  return ranges;
}

void sort_by_begin(Kernels& kernels) {
  if (std::is_sorted(kernels.begin_ns.begin(), kernels.begin_ns.end())) return;
  std::vector<std::uint32_t> order(kernels.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<std::uint32_t>(i);
  std::stable_sort(order.begin(), order.end(),
                   [&](auto a, auto b) { return kernels.begin_ns[a] < kernels.begin_ns[b]; });
  for (auto* column : {&kernels.id, &kernels.begin_ns, &kernels.end_ns, &kernels.thread_id, &kernels.launch_begin_ns,
                       &kernels.device_id}) {
    std::vector<std::int64_t> sorted(order.size());
    for (std::size_t i = 0; i < order.size(); ++i) sorted[i] = (*column)[order[i]];
    *column = std::move(sorted);
  }
}

Result<Kernels> read_kernels(const trace::Run& run, Window slice) {
  const Question* question = find_question("sql/pass_kernels");
  LLMPROF_LET(trace::Columns columns, run.columns(fmt::format("{}WHERE begin_ns >= {} AND begin_ns < {}", question->sql,
                                                              slice.begin_ns, slice.end_ns)));
  Kernels kernels;
  const std::array targets{&kernels.id,        &kernels.begin_ns,        &kernels.end_ns,
                           &kernels.thread_id, &kernels.launch_begin_ns, &kernels.device_id};
  for (std::size_t i = 0; i < targets.size(); ++i) *targets[i] = std::move(columns.values[i]);
  sort_by_begin(kernels);
  return kernels;
}

// Windows of begin_ns with at most kBlockKernels each, but for a single slice that holds more.
Result<std::vector<Window>> kernel_blocks(const trace::Run& run) {
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

Result<GemmOfKernel> read_gemms(const trace::Run& run) {
  LLMPROF_LET(trace::Columns columns, ask_columns(run, "sql/pass_gemms"));
  return GemmOfKernel{std::move(columns.values[0]), std::move(columns.values[1])};
}

Result<std::unordered_map<std::int64_t, std::int64_t>> read_threads(const trace::Run& run) {
  LLMPROF_LET(const trace::ResultTable table, ask(run, "sql/pass_threads"));
  std::unordered_map<std::int64_t, std::int64_t> process_of_thread;
  for (const auto& row : table.rows) process_of_thread[row[0].as_int()] = row[1].as_int();
  return process_of_thread;
}

// Windows of the steps, for busy time: one lane per thread, whose steps do not overlap, and one per stage, in which a
// step's window begins where the earlier steps of the stage have ended. The latter add up to the stage without overlap.
struct StepLanes {
  std::vector<BusyLane> lanes;
  std::vector<std::vector<std::size_t>> steps;  // of each window of each lane
  std::size_t threads = 0;                      // lanes before this are threads, the others stages
};

StepLanes lanes_of(const std::vector<Step>& steps) {
  std::map<std::pair<bool, std::int64_t>, std::pair<std::vector<Window>, std::vector<std::size_t>>> groups;
  std::map<std::uint32_t, std::int64_t> covered_until_ns;
  for (std::size_t i = 0; i < steps.size(); ++i) {  // sorted by begin
    const Window window{steps[i].begin_ns, steps[i].end_ns};
    auto& [of_thread, thread_steps] = groups[{false, steps[i].thread_id}];
    of_thread.push_back(window);
    thread_steps.push_back(i);
    auto& [of_stage, stage_steps] = groups[{true, steps[i].stage.id}];
    std::int64_t& covered = covered_until_ns.try_emplace(steps[i].stage.id, window.begin_ns).first->second;
    if (window.end_ns <= covered) continue;
    of_stage.push_back({std::max(window.begin_ns, covered), window.end_ns});
    stage_steps.push_back(i);
    covered = window.end_ns;
  }
  StepLanes out;
  for (auto& [key, group] : groups) {
    if (!key.first) ++out.threads;
    out.lanes.emplace_back(std::move(group.first));
    out.steps.push_back(std::move(group.second));
  }
  return out;
}

struct StepBusy {
  std::vector<std::int64_t> device_ns, stage_ns;  // per step
};

struct Block {
  Kernels kernels;
  CopiesAndWaits others;
};

Result<Block> read_block(const trace::Run& run, Window kernels, Window others) {
  Block block;
  LLMPROF_LET(block.kernels, read_kernels(run, kernels));
  LLMPROF_LET(block.others, read_copies_and_waits(run, others));
  return block;
}

// Block after block, the next one read while the caller works on this one: until it asks for it, the run belongs to the
// reader.
class BlockReader {
 public:
  BlockReader(const trace::Run& run, std::vector<Window> blocks) : run_(run), blocks_(std::move(blocks)) {
    if (!blocks_.empty()) read_next();
  }
  std::size_t size() const { return blocks_.size(); }
  const Window& window(std::size_t index) const { return blocks_[index]; }

  Result<Block> take() {
    Result<Block> block = next_.get();
    if (begun_ < blocks_.size()) read_next();
    return block;
  }

 private:
  void read_next() {
    // What is not a kernel may begin before the first of them.
    const Window kernels = blocks_[begun_];
    const Window others{begun_ == 0 ? INT64_MIN + 1 : kernels.begin_ns, kernels.end_ns};
    ++begun_;
    // Either policy: where no thread can be had, take() reads.
    next_ = std::async(std::launch::async | std::launch::deferred,
                       [this, kernels, others] { return read_block(run_, kernels, others); });
  }

  const trace::Run& run_;
  std::vector<Window> blocks_;
  std::size_t begun_ = 0;
  std::future<Result<Block>> next_;
};

// Reads the kernels once: writes their attribution and the owners of the steps' time, returns the busy time of each
// step.
Result<StepBusy> attribute_kernels(const trace::Run& run, const Classified& classified, Attribution& attribution,
                                   StepTimes& times, trace::DerivedWriter& writer, const base::Progress& progress) {
  LLMPROF_LET(std::vector<Window> windows, kernel_blocks(run));
  BlockReader blocks(run, std::move(windows));
  StepLanes step_lanes = lanes_of(classified.steps);
  BusyTime busy(std::move(step_lanes.lanes));
  std::vector<trace::AttributionRow> rows;
  for (std::size_t b = 0; b < blocks.size(); ++b) {
    const base::ProgressUpdate update{"attributing kernels", static_cast<double>(b), static_cast<double>(blocks.size()),
                                      "blocks"};
    if (!progress(update)) return Error{ErrorCode::kInterrupted, "interrupted", ""};
    LLMPROF_LET(const Block block, blocks.take());
    const Kernels& kernels = block.kernels;
    rows.clear();
    attribution.attribute(kernels, rows);
    for (const trace::AttributionRow& row : rows) writer.add(row);
    times.add_kernels(kernels, rows);
    add_copies_and_waits(block.others, times);
    times.advance(blocks.window(b).end_ns);
    for (std::size_t i = 0; i < kernels.size(); ++i) {
      busy.add(kernels.device_id[i], {kernels.begin_ns[i], kernels.end_ns[i]});
    }
  }
  if (blocks.size() == 0) {
    LLMPROF_LET(const CopiesAndWaits others, read_copies_and_waits(run, {INT64_MIN + 1, INT64_MAX}));
    add_copies_and_waits(others, times);
  }
  times.finish();
  const std::vector<BusyLane> lanes = busy.finish();
  StepBusy out{std::vector<std::int64_t>(classified.steps.size()), std::vector<std::int64_t>(classified.steps.size())};
  for (std::size_t lane = 0; lane < lanes.size(); ++lane) {
    std::vector<std::int64_t>& target = lane < step_lanes.threads ? out.device_ns : out.stage_ns;
    for (std::size_t i = 0; i < step_lanes.steps[lane].size(); ++i)
      target[step_lanes.steps[lane][i]] = lanes[lane].busy_ns()[i];
  }
  return out;
}

// In blocks of ids, so that memory does not grow with the run.
Result<void> place_samples(const trace::Run& run, Attribution& attribution, trace::DerivedWriter& writer) {
  constexpr std::int64_t kBlockSamples = 1'000'000;
  LLMPROF_LET(const trace::ResultTable ids, run.query("SELECT min(id), max(id) FROM sample"));
  const std::optional<std::int64_t> first = ids.rows[0][0].maybe_int();
  if (!first) return {};
  const Question* question = find_question("sql/pass_samples");
  for (std::int64_t id = *first; id <= ids.rows[0][1].as_int(); id += kBlockSamples) {
    LLMPROF_LET(const trace::Columns samples,
                run.columns(fmt::format("{}WHERE id >= {} AND id < {}", question->sql, id, id + kBlockSamples)));
    for (std::size_t i = 0; i < samples.rows(); ++i) {
      trace::SamplePlaceRow row = attribution.place(samples.values[1][i], samples.values[2][i]);
      row.sample_id = samples.values[0][i];
      writer.add(row);
    }
  }
  return {};
}

void write_steps(const Ranges& ranges, const std::vector<Step>& steps, const Attribution& attribution,
                 const StepBusy& busy, const ModelPasses& passes, trace::DerivedWriter& writer) {
  const trace::Name declared = writer.strings().intern("declared"), inferred = writer.strings().intern("inferred");
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const Step& step = steps[i];
    trace::StepRow row{.id = static_cast<std::int64_t>(i) + 1,
                       .begin_ns = step.begin_ns,
                       .end_ns = step.end_ns,
                       .stage = step.stage,
                       .number = step.number,
                       .process_id = step.process_id,
                       .thread_id = step.thread_id,
                       .batch = step.size.batch,
                       .tokens = step.size.tokens,
                       .context = step.size.context};
    if (step.declared()) row.range_id = ranges.id[step.range];
    if (i < passes.pass_of_step.size()) row.pass_id = passes.pass_of_step[i];
    row.device_busy_ns = busy.device_ns[i];
    row.stage_busy_ns = busy.stage_ns[i];
    row.kernels = attribution.step_kernels[i];
    row.kernel_ns = attribution.step_kernel_ns[i];
    row.source = step.declared() ? declared : inferred;
    row.confidence = step.confidence;
    writer.add(row);
  }
}

bool names_modules(const Classified& classified) {
  return std::any_of(classified.places.begin(), classified.places.end(),
                     [](const RangePlace& place) { return place.kind == RangeKind::kModule; });
}

Result<void> derive(const trace::Run& run, const Basis& basis, const base::Progress& progress) {
  LLMPROF_LET(trace::DerivedWriter writer, trace::DerivedWriter::create(run.folder(), basis.key()));
  LLMPROF_LET(const std::vector<RangePattern> patterns, built_in_patterns());
  LLMPROF_LET(const Ranges ranges, read_ranges(run));
  LLMPROF_LET(const GemmOfKernel gemms, read_gemms(run));
  LLMPROF_LET(const auto process_of_thread, read_threads(run));
  Classified classified = classify(ranges, patterns, writer.strings());
  RunMatch match;
  if (basis.model && !names_modules(classified)) {
    LLMPROF_LET(match, match_run(run, *basis.model, gemms, process_of_thread, classified, writer.strings()));
  }
  ModelPasses passes;
  if (basis.model) {
    passes = model_passes(classified.steps, *basis.model, basis.cache_bytes(), match.fused, writer.strings());
  }
  Attribution attribution(ranges, classified, gemms, match.calls, process_of_thread, writer.strings());
  StepTimes times(ranges, classified, process_of_thread, step_time_devices(basis), writer.strings(),
                  [&](const trace::StepTimeRow& row) { writer.add(row); });
  LLMPROF_LET(const StepBusy busy, attribute_kernels(run, classified, attribution, times, writer, progress));
  LLMPROF_TRY(place_samples(run, attribution, writer));
  write_steps(ranges, classified.steps, attribution, busy, passes, writer);
  for (const trace::ModelOpRow& row : passes.rows) writer.add(row);
  for_each_range_time(ranges, classified, attribution.range_kernel_ns, writer.strings(),
                      [&](const trace::RangeTimeRow& row) { writer.add(row); });
  return writer.finish();
}

}  // namespace

Result<void> ensure_derived(trace::Run& run, const Basis& basis, const base::Progress& progress) {
  LLMPROF_LET(const bool there, run.use_derived(basis.key()));
  if (there) return {};
  LLMPROF_TRY(derive(run, basis, progress));
  LLMPROF_LET(const bool written, run.use_derived(basis.key()));
  if (!written)
    return Error{ErrorCode::kInternal, "the derived tables of " + run.folder() + " cannot be read back", ""};
  return {};
}

}  // namespace llmprof::analyze
