#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "predict/run/predicted_run.h"
#include "trace/run_writer.h"

namespace llmprof::predict {
namespace {

constexpr trace::Id kProcess = 1, kThread = 1, kDevice = 1;
constexpr std::string_view kSource = "predict";

std::int64_t whole_ns(double ns) { return static_cast<std::int64_t>(std::llround(std::clamp(ns, 0.0, 9e18))); }

// Requests of a batch that are all alike: what the payload of a declared step can say.
struct Alike {
  std::int64_t batch = 0, tokens = 0, context = 0;
};

std::optional<Alike> alike(const Batch& batch) {
  if (batch.requests() == 0 || (!batch.chunks.empty() && !batch.contexts.empty())) return std::nullopt;
  Alike all{.batch = batch.requests()};
  if (!batch.chunks.empty()) {
    const Chunk& first = batch.chunks.front();
    const bool same = std::ranges::all_of(batch.chunks, [&](const Chunk& chunk) {
      return chunk.tokens == first.tokens && chunk.computed == first.computed;
    });
    if (!same) return std::nullopt;
    all.tokens = first.tokens;
    all.context = first.tokens + first.computed;
  } else {
    all.tokens = 1;
    all.context = batch.contexts.front();
    if (!std::ranges::all_of(batch.contexts, [&](std::int64_t context) { return context == all.context; }))
      return std::nullopt;
  }
  if (all.batch > kMostStepBatch || all.tokens > kMostStepTokens || all.context > kMostStepTokens) return std::nullopt;
  return all;
}

// Sums over requests, as vLLM writes them into the names of its steps: new tokens, lengths, squares, products.
struct Sums {
  std::int64_t requests = 0, tokens = 0, contexts = 0, squares = 0, products = 0;
  void add(std::int64_t new_tokens, std::int64_t context) {
    ++requests;
    tokens += new_tokens;
    contexts += context;
    squares += new_tokens * new_tokens;
    products += new_tokens * context;
  }
  std::string text() const {
    return fmt::format("{}(sq{}sk{}sqsq{}sqsk{})", requests, tokens, contexts, squares, products);
  }
};

// The name by which analysis knows stage, rows, contexts and the exact work of attention (docs/format/analysis.md).
std::string engine_name(const Batch& batch) {
  Sums prompts, generation;
  for (const Chunk& chunk : batch.chunks) prompts.add(chunk.tokens, chunk.computed + chunk.tokens);
  for (const std::int64_t context : batch.contexts) generation.add(1, context);
  return fmt::format("execute_{}_context_{}_generation_{}", batch.tokens(), prompts.text(), generation.text());
}

class Writer {
 public:
  Writer(trace::RunWriter& writer, const PredictedRun& run) : writer_(writer), run_(run) {}

  void write() {
    device();
    process();
    for (const Place& place : run_.places) places_.push_back({name(place.module), name(place.kernel)});
    for (const PredictedStep& each : run_.steps) step(each);
    for (const PredictedRequest& each : run_.requests) request(each);
    for (const std::string& text : run_.notes)
      writer_.add(trace::NoteRow{.ts_ns = 0, .process_id = {}, .subject = name("prediction"), .text = name(text)});
  }

 private:
  trace::Name name(std::string_view text) { return text.empty() ? trace::Name{} : writer_.strings().intern(text); }

  void device() {
    const hw::Device& device = run_.device;
    writer_.add(trace::DeviceRow{.id = kDevice,
                                 .kind = name(device.kind),
                                 .name = name(device.name),
                                 .chip = name(device.chip),
                                 .units = device.units,
                                 .memory_bytes = device.memory_bytes,
                                 .cache_bytes = device.cache_bytes,
                                 .clock_mhz = device.clock_mhz,
                                 .driver = name(device.driver)});
    for (const hw::Peak& peak : run_.peaks) {
      writer_.add(trace::PeakRow{kDevice, name(peak.quantity), name(peak.type), peak.value, name(peak.unit),
                                 name(peak.source), name(peak.method)});
    }
  }

  // The process that would do it; what only a real one has stays unknown.
  void process() {
    const std::int64_t begin_ns = whole_ns(run_.begin_ns);
    writer_.add(trace::ProcessRow{.id = kProcess, .executable = name("a predicted process"), .begin_ns = begin_ns});
    writer_.add(
        trace::ThreadRow{.id = kThread, .process_id = kProcess, .name = name("predicted"), .begin_ns = begin_ns});
  }

  trace::RangeRow range(std::int64_t begin_ns, std::int64_t end_ns, trace::Name text) {
    return {.id = ++ranges_,
            .begin_ns = begin_ns,
            .end_ns = end_ns,
            .name = text,
            .kind = name("push_pop"),
            .process_id = kProcess,
            .thread_id = kThread,
            .source = name(kSource)};
  }

  void step(const PredictedStep& step) {
    const std::int64_t begin_ns = whole_ns(step.begin_ns), end_ns = whole_ns(step.begin_ns + step.device_ns);
    if (step.batch.requests() == 0 || end_ns <= begin_ns) return;
    trace::RangeRow row = range(begin_ns, end_ns, {});
    row.domain = name("llmprof"), row.category = name("step");
    if (const auto all = alike(step.batch)) {
      row.name = name(stage_of(step.batch));
      row.payload = all->batch | all->tokens << 16 | all->context << 40;
    } else {
      row.name = name(engine_name(step.batch));
    }
    writer_.add(row);
    for (const Execution& each : step.work) execution(each, step, row.id);
  }

  void execution(const Execution& each, const PredictedStep& step, trace::Id step_range) {
    const std::int64_t begin_ns = whole_ns(step.begin_ns + each.begin_ns);
    const std::int64_t end_ns = whole_ns(step.begin_ns + each.begin_ns + each.ns);
    if (end_ns <= begin_ns) return;  // less than a nanosecond
    const PlaceNames& place = places_[each.place];
    if (place.module != trace::Name{}) {
      trace::RangeRow row = range(begin_ns, end_ns, place.module);
      row.parent_id = step_range, row.depth = 1;
      row.domain = name("llmprof"), row.category = name("module");
      writer_.add(row);
    }
    writer_.add(trace::KernelRow{.id = ++kernels_,
                                 .begin_ns = begin_ns,
                                 .end_ns = end_ns,
                                 .name = place.kernel,
                                 .device_id = kDevice,
                                 .stream = 0,
                                 .thread_id = kThread,
                                 .estimated = true});
  }

  void request(const PredictedRequest& request) {
    trace::RequestRow row{.id = ++requests_, .arrival_ns = whole_ns(request.arrival_ns)};
    if (request.first_token_ns) row.first_token_ns = whole_ns(*request.first_token_ns);
    if (request.end_ns) row.end_ns = whole_ns(*request.end_ns);
    row.prompt_tokens = request.prompt_tokens, row.output_tokens = request.output_tokens;
    row.status = name(request.status);
    row.source = name("predicted");
    writer_.add(row);
  }

  struct PlaceNames {
    trace::Name module, kernel;
  };
  trace::RunWriter& writer_;
  const PredictedRun& run_;
  std::vector<PlaceNames> places_;
  trace::Id ranges_ = 0, kernels_ = 0, requests_ = 0;
};

trace::RunInfo info_of(const PredictedRun& run) {
  trace::RunInfo info;
  info.command = run.command;
  info.environment = "{}";  // no machine was looked at
  info.clock = "predicted";
  info.source = kSource;
  info.prediction = run.stands_on;
  if (!run.config_text.empty()) {
    trace::NotedModel model{"given", run.model_origin, run.config_text, {}};
    model.weights_type = run.types.weights, model.kv_type = run.types.kv;
    model.activations_type = run.types.activations, model.arithmetic_type = run.types.arithmetic;
    info.models.push_back(std::move(model));
  }
  if (run.parallel.ranks() > 1 || run.parallel.expert > 1) {
    info.parallel = fmt::format("tp={}", run.parallel.tensor);
    if (run.parallel.expert > 1) info.parallel += fmt::format(",ep={}", run.parallel.expert);
  }
  return info;
}

}  // namespace

std::string_view stage_of(const Batch& batch) {
  if (batch.chunks.empty()) return "decode";
  return batch.contexts.empty() ? "prefill" : "mixed";
}

Result<void> write_run(const std::string& folder, const PredictedRun& run) {
  LLMPROF_LET(trace::RunWriter writer, trace::RunWriter::create(folder));
  Writer(writer, run).write();
  return writer.finish(info_of(run));
}

}  // namespace llmprof::predict
