#include "analyze/derive.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <functional>
#include <map>
#include <set>
#include <unordered_map>

#include "analyze/model/efficiency.h"
#include "analyze/model/model_passes.h"
#include "analyze/model/work_reader.h"
#include "analyze/passes/attribute.h"
#include "analyze/passes/classify.h"
#include "analyze/passes/step_time.h"
#include "analyze/passes/sums.h"
#include "analyze/questions.h"
#include "analyze/requests/shares.h"
#include "analyze/steps/infer_steps.h"
#include "analyze/steps/sampled_loops.h"
#include "analyze/steps/step_windows.h"
#include "trace/run_writer.h"

namespace llmprof::analyze {
namespace {

Result<Ranges> read_ranges(const trace::Run& run) {
  LLMPROF_LET(trace::Columns columns, ask_columns(run, "pass_ranges"));
  Ranges ranges;
  const std::array targets{&ranges.id,    &ranges.begin_ns, &ranges.end_ns, &ranges.thread_id, &ranges.process_id,
                           &ranges.depth, &ranges.name,     &ranges.domain, &ranges.category,  &ranges.payload};
  for (std::size_t i = 0; i < targets.size(); ++i) *targets[i] = std::move(columns.values[i]);
  ranges.texts = std::move(columns.names);
  if (ranges.texts.empty()) ranges.texts.emplace_back();  // code 0 is NULL
  sort_for_sweep(ranges);
  return ranges;
}

Result<GemmOfKernel> read_gemms(const trace::Run& run) {
  LLMPROF_LET(trace::Columns columns, ask_columns(run, "pass_gemms"));
  return GemmOfKernel{std::move(columns.values[0]), std::move(columns.values[1])};
}

struct Pass {  // over what devices executed
  const trace::Run& run;
  const std::vector<Window>& windows;
  const GraphFacts& graphs;
  Attribution& attribution;
  StepTimes& times;
  StepBusy& busy;
  KernelSums& sums;
  trace::DerivedWriter& writer;
};

void attribute_block(const WorkBlock& block, Pass& pass) {
  std::vector<trace::AttributionRow> rows;
  pass.attribution.attribute(block.kernels, rows);
  for (const trace::AttributionRow& row : rows) pass.writer.add(row);
  pass.sums.add(block.kernels, rows);
  std::vector<trace::LaunchPlaceRow> places;
  pass.attribution.place_launches(block.launches, pass.graphs.shares, places);
  for (const trace::LaunchPlaceRow& place : places) pass.writer.add(place);
  pass.times.add_work(block.kernels, rows, block.launches, places, pass.graphs.mixes);
  add_copies_and_waits(block.others, pass.times);
  pass.busy.add(block, pass.graphs.shares);
}

// Reads all of it once: writes where it belongs and the owners of the steps' time, adds up the busy time of each step.
Result<void> attribute_work(Pass& pass, const base::Progress& progress) {
  WorkReader blocks(pass.run, pass.windows, WorkReader::With::kAll);
  for (std::size_t b = 0; b < blocks.size(); ++b) {
    const base::ProgressUpdate update{"attributing kernels", static_cast<double>(b), static_cast<double>(blocks.size()),
                                      "blocks"};
    if (!progress(update)) return Error{ErrorCode::kInterrupted, "interrupted", ""};
    LLMPROF_LET(const WorkBlock block, blocks.take());
    attribute_block(block, pass);
    pass.times.advance(blocks.window(b).end_ns);
  }
  if (blocks.size() == 0) {
    LLMPROF_LET(const CopiesAndWaits others, read_copies_and_waits(pass.run, {INT64_MIN + 1, INT64_MAX}));
    add_copies_and_waits(others, pass.times);
  }
  pass.times.finish();
  pass.busy.finish();
  pass.sums.finish();
  return {};
}

// In blocks of ids, so that memory does not grow with the run.
Result<void> for_each_sample(const trace::Run& run,
                             const std::function<void(std::int64_t id, std::int64_t thread_id, std::int64_t at)>& use) {
  constexpr std::int64_t kBlockSamples = 1'000'000;
  LLMPROF_LET(const trace::ResultTable ids, run.query("SELECT min(id), max(id) FROM sample"));
  const std::optional<std::int64_t> first = ids.rows[0][0].maybe_int();
  if (!first) return {};
  for (std::int64_t id = *first; id <= ids.rows[0][1].as_int(); id += kBlockSamples) {
    LLMPROF_LET(const trace::Columns samples, run.columns(fmt::format("{}WHERE id >= {} AND id < {}",
                                                                      sql_of("pass_samples"), id, id + kBlockSamples)));
    for (std::size_t i = 0; i < samples.rows(); ++i)
      use(samples.values[0][i], samples.values[1][i], samples.values[2][i]);
  }
  return {};
}

Result<void> place_samples(const trace::Run& run, Attribution& attribution, const IdleTime& idle,
                           const SampledLoops& loops, trace::DerivedWriter& writer) {
  const trace::Name sampled = writer.strings().intern("sampled");
  return for_each_sample(run, [&](std::int64_t id, std::int64_t thread_id, std::int64_t at_ns) {
    trace::SamplePlaceRow row = attribution.place(thread_id, at_ns);
    row.sample_id = id;
    row.idle_in_step = idle.step_of(id);
    if (const auto told = loops.places.find(id); told != loops.places.end()) {  // its own stack knows best
      if (row.stage != told->second.stage) row.step_id = {};
      row.stage = told->second.stage;
      row.module = row.op = told->second.part;
      row.source = sampled;
      row.confidence = kSampledConfidence;
    }
    writer.add(row);
  });
}

void write_steps(const Ranges& ranges, const std::vector<Step>& steps, const Attribution& attribution,
                 const StepBusy& busy, const ModelPasses& passes, const std::vector<bool>& warm_up,
                 trace::DerivedWriter& writer) {
  const trace::Name declared = writer.strings().intern("declared"), inferred = writer.strings().intern("inferred");
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const Step& step = steps[i];
    trace::StepRow row{.id = static_cast<std::int64_t>(i) + 1,
                       .begin_ns = step.begin_ns,
                       .end_ns = step.end_ns,
                       .turn_ns = step.turn(),
                       .stage = step.stage,
                       .number = step.number,
                       .process_id = step.process_id,
                       .thread_id = step.thread_id,
                       .batch = step.size.batch,
                       .tokens = step.size.tokens,
                       .context = step.size.context,
                       .rows = step.size.rows,
                       .contexts = step.size.context ? std::nullopt : step.size.contexts,
                       .contexts_most = step.size.context ? std::nullopt : step.size.contexts_most};
    if (step.declared()) row.range_id = ranges.id[step.range];
    if (i < passes.pass_of_step.size()) row.pass_id = passes.pass_of_step[i];
    row.device_busy_ns = busy.device_ns[i];
    row.stage_busy_ns = busy.stage_ns[i];
    row.kernels = attribution.step_kernels[i];
    row.kernel_ns = attribution.step_kernel_ns[i];
    row.source = step.declared() ? declared : inferred;
    row.confidence = step.confidence;
    row.warm_up = warm_up[i];
    writer.add(row);
  }
}

// By names that could be the model's.
bool names_modules(const Classified& classified) {
  return std::any_of(classified.places.begin(), classified.places.end(),
                     [](const RangePlace& place) { return place.kind == RangeKind::kModule && !place.own_name; });
}

// The program's own numbered blocks are the layers of the model: "Layer.3.attention" is "h.3.attention", also where
// they lie in something else: "classifier_and_loss.Layer.3".
void call_blocks_as_model(const model::Graph& model, trace::Strings& strings, Classified& classified) {
  std::map<std::uint32_t, trace::Name> renamed;
  const auto rename = [&](trace::Name old) {
    auto [entry, fresh] = renamed.try_emplace(old.id, old);
    if (!fresh) return entry->second;
    const std::string path(strings.text(old));
    std::int64_t number = -1;
    std::size_t end = 0;  // of the first part that is a number, with one before it
    for (std::size_t dot = path.find('.'); dot != std::string::npos && number < 0; dot = path.find('.', dot + 1)) {
      end = std::min(path.find('.', dot + 1), path.size());
      const auto [behind, error] = std::from_chars(path.data() + dot + 1, path.data() + end, number);
      if (error != std::errc{} || behind != path.data() + end) number = -1;
    }
    if (number < 0 || number >= model.config().layers()) return old;
    return entry->second = strings.intern(fmt::format("{}.{}{}", model.layer_prefix(), number, path.substr(end)));
  };
  for (RangePlace& place : classified.places) {
    if (place.own_name && place.module.id != 0) place.module = rename(place.module);
  }
}

// Frameworks name modules by their classes ("LlamaDecoderLayer.3.LlamaMLP"). Where none of the names is one of the
// model's, the shapes of the products tell its parts better: the names are set aside.
void forget_foreign_modules(const model::Graph& model, const trace::Strings& strings, Classified& classified) {
  std::set<std::string, std::less<>> known;
  for (const model::OpCost& op : model::analyze(model, model::decode(1, 1), {})) {
    for (std::size_t end = op.module.size(); end != std::string::npos; end = op.module.rfind('.', end - 1)) {
      known.insert(op.module.substr(0, end));  // "layers.3.mlp.up_proj", "layers.3.mlp", "layers.3", "layers"
    }
  }
  const auto is_known = [&](const RangePlace& place) {
    return place.kind == RangeKind::kModule && known.contains(strings.text(place.module));
  };
  if (std::any_of(classified.places.begin(), classified.places.end(), is_known)) return;
  for (RangePlace& place : classified.places) {
    place.module = {};
    if (place.kind == RangeKind::kModule) place.kind = RangeKind::kPlain;
  }
}

// A program that captures its model into a graph calls it for that, and then launches the graph alone: its steps are
// these launches, and the calls are not.
Result<void> set_aside_what_was_captured(const trace::Run& run, Classified& classified) {
  const auto calls = std::ranges::count(classified.steps, kPassConfidence, &Step::confidence);
  if (calls == 0) return {};
  LLMPROF_LET(const trace::Columns launches,
              run.columns("SELECT coalesce(launch_begin_ns, begin_ns) FROM graph_launch ORDER BY 1"));
  std::ptrdiff_t outside = 0;
  std::size_t next = 0;
  std::int64_t covered_ns = INT64_MIN;  // end of the steps that began before
  for (std::size_t i = 0; i < launches.rows(); ++i) {
    const std::int64_t at_ns = launches.values[0][i];
    for (; next < classified.steps.size() && classified.steps[next].begin_ns <= at_ns; ++next)
      covered_ns = std::max(covered_ns, classified.steps[next].end_ns);
    if (at_ns >= covered_ns) ++outside;
  }
  if (outside > calls) set_calls_aside(classified);
  return {};
}

// Steps that say nothing, and whose sequences are not alike: as many as logits, with the rows of their products
// together. How long they are is not known.
void size_by_logits(const std::map<std::int32_t, std::int64_t>& logits_rows, const trace::Strings& strings,
                    std::vector<Step>& steps) {
  for (const auto& [index, logits] : logits_rows) {
    Step& step = steps[static_cast<std::size_t>(index)];
    const std::string_view stage = strings.text(step.stage);
    if (stage != "prefill" && stage != "decode" && stage != "mixed") continue;
    if (step.size.batch || step.size.tokens || !step.size.rows) continue;
    step.size.batch = logits;
    step.size.contexts = step.size.rows;  // at least what is new
  }
}

// 0: unknown, or not the same in all layers.
std::int64_t known_heads(const model::Config& config) {
  if (std::ranges::find(config.notes, model::kHeadsUnknown, &model::Caveat::field) != config.notes.end()) return 0;
  const std::int64_t heads = config.kinds.empty() ? 0 : config.kinds.front().attention.heads;
  const auto same = [&](const model::LayerKind& kind) { return kind.attention.heads == heads; };
  return std::ranges::all_of(config.kinds, same) ? heads : 0;
}

// Tensor ranks make the same products, but for a remainder; stages of a pipeline have layers of their own.
std::vector<ModelPart> parts_to_match(const AnalysisContext& analysis) {
  if (analysis.job.groups.pipeline <= 1 || analysis.part_of.empty()) return {{.graph = &*analysis.model}};
  std::map<std::size_t, ModelPart> parts;
  for (const auto& [process, part] : analysis.part_of) {
    parts[part].graph = &analysis.parts[part];
    parts[part].processes.insert(process);
  }
  std::vector<ModelPart> out;
  for (auto& [number, part] : parts) out.push_back(std::move(part));
  return out;
}

// Steps and modules that no range declares: from the shapes of a known model, else from the rhythm of the launches.
Result<RunMatch> infer(const trace::Run& run, const AnalysisContext& analysis, const ProcessOfThread& process_of_thread,
                       Classified& classified, trace::Strings& strings) {
  RunMatch match;
  LLMPROF_TRY(set_aside_what_was_captured(run, classified));
  const auto has_passes = [&] {  // steps by the program's own names are steps, whatever else launches could tell
    return std::any_of(classified.steps.begin(), classified.steps.end(), [&](const Step& step) {
      const std::string_view stage = strings.text(step.stage);
      return has_formula(stage) || stage == "training" || step.confidence == kRepeatedConfidence ||
             step.confidence == kPassConfidence;
    });
  };
  if (!has_passes()) {
    LLMPROF_LET(std::vector<Step> steps, infer_training(run, process_of_thread, strings));
    add_steps(std::move(steps), classified);
  }
  if (analysis.model && names_modules(classified)) forget_foreign_modules(*analysis.model, strings, classified);
  if (analysis.model) call_blocks_as_model(*analysis.model, strings, classified);
  if (analysis.model && !names_modules(classified)) {
    LLMPROF_LET(match, match_run(run, parts_to_match(analysis), process_of_thread, classified, strings));
  }
  if (has_passes()) {
    if (analysis.model) LLMPROF_TRY(size_declared_steps(run, process_of_thread, strings, classified));
    size_by_logits(match.logits_rows, strings, classified.steps);
    if (analysis.model) LLMPROF_TRY(size_by_attention(run, known_heads(analysis.model->config()), strings, classified));
    return match;
  }
  LLMPROF_LET(std::vector<Step> steps, infer_launch_steps(run, process_of_thread, strings));
  add_steps(std::move(steps), classified);
  return match;
}

Result<void> derive(const trace::Run& run, const AnalysisContext& analysis, const base::Progress& progress) {
  LLMPROF_LET(trace::DerivedWriter writer, trace::DerivedWriter::create(run.folder(), analysis.key()));
  LLMPROF_LET(const Ranges ranges, read_ranges(run));
  LLMPROF_LET(const GemmOfKernel gemms, read_gemms(run));
  LLMPROF_LET(const auto process_of_thread, read_threads(run));
  LLMPROF_LET(GraphFacts graphs, read_graphs(run));
  Classified classified = classify(ranges, analysis.patterns, writer.strings());
  LLMPROF_LET(const RunMatch match, infer(run, analysis, process_of_thread, classified, writer.strings()));
  SampledLoops loops;
  if (classified.steps.empty()) {
    LLMPROF_LET(loops, find_sampled_loops(run, analysis.patterns, process_of_thread, writer.strings()));
    add_steps(loops.steps, classified);
    for (const trace::SampledStageRow& row : loops.rows) writer.add(row);
  }
  adopt_ranges(ranges, classified);
  LLMPROF_LET(const std::vector<StepMembers> members, read_members(run, classified.steps));
  size_by_members(members, classified.steps);
  ModelPasses passes;
  if (analysis.model) {
    const auto graph_of = [&](std::int64_t process_id) { return analysis.graph_of(process_id); };
    passes = model_passes(classified.steps, graph_of, analysis.cache_bytes(), match.fused, writer.strings(),
                          match.recomputed, roofline_of(analysis));
  }
  Attribution attribution(ranges, classified, gemms, match.calls, process_of_thread, writer.strings());
  const std::vector<trace::NodePlaceRow> nodes = attribution.place_nodes(graphs.nodes);
  make_mixes(nodes, graphs);
  const std::vector<trace::NodeShareRow> shares = node_share_rows(graphs, writer.strings());
  writer.add_all(nodes);
  writer.add_all(shares);
  const StepTimes::Devices devices = step_time_devices(analysis);
  LLMPROF_LET(const std::vector<Window> windows, work_blocks(run));
  if (devices.others_worked) LLMPROF_TRY(extend_steps(run, windows, devices, attribution, classified.steps));
  const std::vector<bool> warm_up = warm_up_steps(classified.steps, writer.strings());
  StepShares shares_of_requests(analysis, classified.steps, members, writer.strings());
  IdleTime idle(ranges, classified, warm_up, writer.strings());
  LLMPROF_TRY(for_each_sample(run, [&](std::int64_t id, std::int64_t thread_id, std::int64_t at_ns) {
    if (const auto process = process_of_thread.find(thread_id); process != process_of_thread.end())
      idle.add_sample(process->second, at_ns, id);
  }));
  StepTimes times(
      ranges, classified, process_of_thread, devices, writer.strings(),
      [&](const trace::StepTimeRow& row) {
        writer.add(row);
        shares_of_requests.add(row);
      },
      &idle);
  StepBusy busy(classified.steps, devices, analysis.job);
  KernelSums sums(writer.strings(), [&](const trace::KernelSumRow& row) { writer.add(row); });
  Pass pass{run, windows, graphs, attribution, times, busy, sums, writer};
  LLMPROF_TRY(attribute_work(pass, progress));
  LLMPROF_TRY(place_samples(run, attribution, idle, loops, writer));
  for (const trace::IdlePlaceRow& row : idle.finish()) writer.add(row);
  write_steps(ranges, classified.steps, attribution, busy, passes, warm_up, writer);
  const std::vector<trace::StepMemberRow> member_rows = shares_of_requests.finish(warm_up);  // until finish()
  writer.add_all(member_rows);
  for (const trace::ModelOpRow& row : passes.rows) writer.add(row);
  RangeSums range_sums(passes.pass_of_step);
  RangeTree tree(ranges, classified, writer.strings());
  std::size_t range = 0;
  for_each_range_time(ranges, classified, attribution.range_kernel_ns, writer.strings(), [&](trace::RangeTimeRow row) {
    row.range_tree_id = tree.add(range++, row);
    writer.add(row);
    range_sums.add(row);
  });
  for (const trace::RangeMeaningRow& row : classified.meanings) writer.add(row);
  for (const trace::RangeTreeRow& row : tree.finish()) writer.add(row);
  for (const trace::RangeSumRow& row : range_sums.finish()) writer.add(row);
  return writer.finish();
}

}  // namespace

Result<void> ensure_derived(trace::Run& run, const AnalysisContext& analysis, const base::Progress& progress) {
  LLMPROF_LET(const bool there, run.use_derived(analysis.key()));
  if (there) return {};
  LLMPROF_TRY(derive(run, analysis, progress));
  LLMPROF_LET(const bool written, run.use_derived(analysis.key()));
  if (!written)
    return Error{ErrorCode::kInternal, "the derived tables of " + run.folder() + " cannot be read back", ""};
  return {};
}

}  // namespace llmprof::analyze
