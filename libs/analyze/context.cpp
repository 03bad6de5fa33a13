#include "analyze/context.h"

#include <fmt/format.h>

#include <algorithm>

#include "analyze/model/detect_model.h"
#include "analyze/names/ranges.h"
#include "analyze/questions.h"
#include "hw/resolve.h"
#include "hw/roof.h"
#include "model/shard.h"

namespace llmprof::analyze {

namespace {

// Raise it when a pass changes what it computes.
constexpr int kAnalysisVersion = 29;

std::uint64_t fnv1a(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash;
}

void take_model(const FoundModel& found, AnalysisContext& analysis) {
  analysis.model_text = found.text;
  analysis.model_source = found.source;
  analysis.model_origin = found.origin;
  analysis.model_note = found.note;
  analysis.model_why = found.why;
}

// A GPU that its run gives no peak (an older run) has those of the catalogue, if the catalogue knows it by name.
void add_spec_peaks(AnalysisContext& analysis) {
  for (std::size_t i = 0; i < analysis.devices.size(); ++i) {
    const std::int64_t id = analysis.device_ids[i];
    const auto own = [&](const PeakRate& rate) { return rate.device_id == id; };
    if (std::any_of(analysis.peaks.begin(), analysis.peaks.end(), own)) continue;
    for (const hw::Peak& peak :
         hw::with_spec_peaks({.kind = analysis.devices[i].kind, .name = analysis.devices[i].name}, {})) {
      analysis.peaks.push_back({id, peak.quantity, peak.type, peak.value, peak.source, peak.method});
    }
  }
}

Result<void> find_devices(const trace::Run& run, AnalysisContext& analysis) {
  LLMPROF_LET(const trace::ResultTable devices, ask(run, "devices"));
  for (const auto& row : devices.rows) {
    const auto text = [&](const char* name) { return row[devices.column(name)].text; };
    const auto number = [&](const char* name) { return row[devices.column(name)].as_int(); };
    analysis.device_ids.push_back(number("id"));
    analysis.devices.push_back({.kind = text("kind"),
                                .name = text("name"),
                                .chip = text("chip"),
                                .driver = text("driver"),
                                .uuid = text("uuid"),
                                .units = number("units"),
                                .memory_bytes = number("memory_bytes"),
                                .cache_bytes = number("cache_bytes"),
                                .kernel_ns = number("kernel_ns")});
  }
  for (DeviceCard& device : analysis.devices) {
    const DeviceCard& busiest = analysis.devices.front();
    device.idle = device.kernel_ns == 0 || device.kind != busiest.kind ||
                  static_cast<double>(device.kernel_ns) < kNegligible * static_cast<double>(busiest.kernel_ns);
    if (!device.idle) ++analysis.busy_devices;
  }
  LLMPROF_LET(const trace::ResultTable peaks, ask(run, "peaks"));
  for (const auto& row : peaks.rows) {
    const auto text = [&](const char* name) { return row[peaks.column(name)].text; };
    analysis.peaks.push_back({.device_id = row[peaks.column("device_id")].as_int(),
                              .quantity = text("quantity"),
                              .type = text("type"),
                              .value = row[peaks.column("value")].as_double(),
                              .source = text("source"),
                              .method = text("method")});
  }
  add_spec_peaks(analysis);
  return {};
}

// What the text of the config does not say.
std::string types_of(const std::optional<model::Graph>& model) {
  if (!model) return "";
  std::string text = fmt::format("{} {}", model->config().arithmetic, model->config().weight.type);
  for (const auto& [module, number] : model->config().stored) text += fmt::format(" {}={}", module, number.bytes);
  return text;
}

const PeakRate* find_rate(const std::vector<PeakRate>& peaks, std::int64_t device_id, std::string_view quantity,
                          std::string_view type) {
  const bool memory = quantity == "bandwidth" && type == hw::kMemoryStream;
  const PeakRate* best = nullptr;
  for (const PeakRate& rate : peaks) {
    if (rate.device_id != device_id || rate.quantity != quantity) continue;
    if (memory) {
      if (hw::is_memory_stream(rate.type) && (best == nullptr || hw::better_memory_peak(rate, *best))) best = &rate;
    } else if (type.empty() || rate.type == hw::peak_type(type)) {
      return &rate;
    }
  }
  return best;
}

}  // namespace

const PeakRate* AnalysisContext::memory_peak(std::int64_t device_id) const {
  return find_rate(peaks, device_id, "bandwidth", hw::kMemoryStream);
}

std::string AnalysisContext::memory_peak_in_words(std::int64_t device_id) const {
  const PeakRate* best = memory_peak(device_id);
  if (best == nullptr || best->source != "measured") return "";
  const auto streams = std::count_if(peaks.begin(), peaks.end(), [&](const PeakRate& rate) {
    return rate.device_id == device_id && rate.quantity == "bandwidth" && hw::is_memory_stream(rate.type) &&
           rate.source == "measured";
  });
  return streams > 1 ? fmt::format("{}, the fastest of {} streams", best->type, streams) : best->type;
}

const PeakRate* AnalysisContext::peak(std::string_view quantity, std::string_view type) const {
  return device_ids.empty() ? nullptr : find_rate(peaks, device_ids.front(), quantity, type);
}

std::optional<PeakRate> AnalysisContext::total_peak(std::string_view quantity, std::string_view type) const {
  const PeakRate* first = peak(quantity, type);
  if (first == nullptr) return std::nullopt;
  PeakRate total = *first;
  for (std::size_t i = 1; i < devices.size(); ++i) {
    if (devices[i].idle) continue;
    const PeakRate* other = find_rate(peaks, device_ids[i], quantity, type);
    if (other == nullptr) return std::nullopt;
    total.value += other->value;
    if (other->source != "measured") total.source = other->source;
  }
  return total;
}

const model::Graph* AnalysisContext::graph_of(std::int64_t process_id) const {
  if (const auto part = part_of.find(process_id); part != part_of.end()) return &parts[part->second];
  if (!job.known) return nullptr;
  return whole ? &*whole : nullptr;
}

std::string AnalysisContext::key() const {
  std::string text = fmt::format("{}|{}|{}|{}", kAnalysisVersion, model_text, types_of(model), cache_bytes());
  for (const JobRank& rank : job.ranks) {
    const RankPlace& at = rank.place;
    text +=
        fmt::format("|{} {} {} {} {}", fmt::join(rank.processes, " "), job.known, at.tensor, at.pipeline, at.expert);
  }
  text += fmt::format("|{} {} {}", job.groups.tensor, job.groups.pipeline, job.groups.expert);
  for (const RangePattern& row : patterns) {
    text +=
        fmt::format("|{} {} {} {} {}", row.pattern, static_cast<int>(row.kind), row.stage, row.container, row.users);
  }
  for (const PeakRate& rate : peaks) {
    text += fmt::format("|{} {} {} {}", rate.device_id, rate.quantity, rate.type, rate.value);
  }
  return fmt::format("{:016x}", fnv1a(text));
}

namespace {

// What decides about the costs of any pass.
std::vector<double> costs_of(const model::Graph& graph) {
  std::vector<double> costs;
  for (const model::OpCost& op : model::analyze(graph, model::decode(2, 3), {})) {
    costs.insert(costs.end(), {op.flops, op.weight_bytes, op.kv_bytes, op.activation_bytes});
  }
  return costs;
}

// Each rank's part of the model. A model that cannot be divided so leaves the division unknown.
Result<void> divide_model(const model::Config& whole, AnalysisContext& analysis) {
  const ParallelGroups& groups = analysis.job.groups;
  const model::Parallel parallel{.tensor = groups.tensor, .pipeline = groups.pipeline, .expert = groups.expert};
  std::map<std::vector<double>, std::size_t> alike;
  for (const JobRank& rank : analysis.job.ranks) {
    const RankPlace& at = rank.place;
    LLMPROF_LET(const model::Config config,
                model::shard(whole, parallel, {.tensor = at.tensor, .pipeline = at.pipeline, .expert = at.expert}));
    model::Graph graph(config);
    std::vector<double> costs = costs_of(graph);
    costs.push_back(static_cast<double>(config.first_layer));
    const auto [known, fresh] = alike.try_emplace(std::move(costs), analysis.parts.size());
    if (fresh) analysis.parts.push_back(std::move(graph));
    for (const std::int64_t process : rank.processes) analysis.part_of[process] = known->second;
  }
  // The layers of all pipeline ranks: what products are matched to.
  LLMPROF_LET(const model::Config layers, model::shard(whole, {.tensor = groups.tensor, .expert = groups.expert}, {}));
  analysis.model.emplace(layers);
  return {};
}

Result<void> find_parts(const trace::Run& run, const Options& options, const FoundModel& found,
                        AnalysisContext& analysis) {
  JobSources sources{.option = options.parallel, .noted = run.info().parallel};
  for (std::size_t i = 0; i < analysis.devices.size(); ++i) {
    if (!analysis.devices[i].idle) sources.busy_devices.push_back(analysis.device_ids[i]);
  }
  if (found.config) {
    sources.tensor = found.tensor;
    sources.part_is_model = found.source == "products";
    sources.hidden = found.config->hidden, sources.vocab = found.config->vocab;
    if (found.config->kinds.size() == 1 && found.config->kinds[0].mlp.experts == 0) {
      sources.layers = found.config->layers(), sources.width = found.config->kinds[0].mlp.width;
    }
  }
  LLMPROF_LET(analysis.job, find_job(run, sources));
  if (!found.config) return {};
  analysis.whole.emplace(*found.config);
  const bool divided = analysis.job.groups.parts() > 1 || analysis.job.groups.expert > 1;
  if (!sources.part_is_model && analysis.job.known && divided) {
    const auto made = divide_model(*found.config, analysis);
    if (made && !analysis.parts.empty()) return {};
    if (made) {  // nothing executed: whoever declares steps has others compute for it
      analysis.parts.push_back(*analysis.whole);
      return {};
    }
    analysis.parts.clear(), analysis.part_of.clear();
    analysis.job.known = false;
    analysis.job.why = made.error().message;
  }
  analysis.model = analysis.whole;
  // Where every rank computes the same, be it all of the model or what was inferred from the products of one.
  if (!analysis.job.known && !sources.part_is_model) return {};
  analysis.parts.push_back(*analysis.whole);
  for (const JobRank& rank : analysis.job.ranks) {
    for (const std::int64_t process : rank.processes) analysis.part_of[process] = 0;
  }
  return {};
}

}  // namespace

Result<AnalysisContext> find_context(const trace::Run& run, const Options& options) {
  AnalysisContext analysis;
  LLMPROF_LET(const FoundModel found, find_model(run, options));
  LLMPROF_TRY(find_devices(run, analysis));
  take_model(found, analysis);
  LLMPROF_TRY(find_parts(run, options, found, analysis));
  LLMPROF_LET(analysis.patterns, range_patterns(options.ranges, run.info().range_rules));
  return analysis;
}

}  // namespace llmprof::analyze
