#include "analyze/basis.h"

#include <fmt/format.h>

#include <algorithm>

#include "analyze/detect_model.h"
#include "analyze/questions.h"
#include "analyze/ranges.h"
#include "hw/resolve.h"
#include "hw/roof.h"
#include "model/shard.h"

namespace llmprof::analyze {

namespace {

// Raise it when a pass changes what it computes.
constexpr int kAnalysisVersion = 28;

std::uint64_t fnv1a(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash;
}

void take_model(const FoundModel& found, Basis& basis) {
  basis.model_text = found.text;
  basis.model_source = found.source;
  basis.model_origin = found.origin;
  basis.model_note = found.note;
  basis.model_why = found.why;
}

// A GPU that its run gives no peak (an older run) has those of the catalogue, if the catalogue knows it by name.
void add_spec_peaks(Basis& basis) {
  for (std::size_t i = 0; i < basis.devices.size(); ++i) {
    const std::int64_t id = basis.device_ids[i];
    const auto own = [&](const PeakRate& rate) { return rate.device_id == id; };
    if (std::any_of(basis.peaks.begin(), basis.peaks.end(), own)) continue;
    for (const hw::Peak& peak :
         hw::with_spec_peaks({.kind = basis.devices[i].kind, .name = basis.devices[i].name}, {})) {
      basis.peaks.push_back({id, peak.quantity, peak.type, peak.value, peak.source, peak.method});
    }
  }
}

Result<void> find_devices(const trace::Run& run, Basis& basis) {
  LLMPROF_LET(const trace::ResultTable devices, ask(run, "sql/devices"));
  for (const auto& row : devices.rows) {
    const auto text = [&](const char* name) { return row[devices.column(name)].text; };
    const auto number = [&](const char* name) { return row[devices.column(name)].as_int(); };
    basis.device_ids.push_back(number("id"));
    basis.devices.push_back({.kind = text("kind"),
                             .name = text("name"),
                             .chip = text("chip"),
                             .driver = text("driver"),
                             .uuid = text("uuid"),
                             .units = number("units"),
                             .memory_bytes = number("memory_bytes"),
                             .cache_bytes = number("cache_bytes"),
                             .kernel_ns = number("kernel_ns")});
  }
  for (DeviceCard& device : basis.devices) {
    const DeviceCard& busiest = basis.devices.front();
    device.idle = device.kernel_ns == 0 || device.kind != busiest.kind ||
                  static_cast<double>(device.kernel_ns) < kNegligible * static_cast<double>(busiest.kernel_ns);
    if (!device.idle) ++basis.busy_devices;
  }
  LLMPROF_LET(const trace::ResultTable peaks, ask(run, "sql/peaks"));
  for (const auto& row : peaks.rows) {
    const auto text = [&](const char* name) { return row[peaks.column(name)].text; };
    basis.peaks.push_back({.device_id = row[peaks.column("device_id")].as_int(),
                           .quantity = text("quantity"),
                           .type = text("type"),
                           .value = row[peaks.column("value")].as_double(),
                           .source = text("source"),
                           .method = text("method")});
  }
  add_spec_peaks(basis);
  return {};
}

// What the text of the config does not say.
std::string types_of(const std::optional<model::Graph>& model) {
  if (!model) return "";
  std::string text = fmt::format("{} {}", model->config().arithmetic, model->config().weight.type);
  for (const auto& [module, number] : model->config().stored) text += fmt::format(" {}={}", module, number.bytes);
  return text;
}

}  // namespace

namespace {

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

const PeakRate* Basis::memory_peak(std::int64_t device_id) const {
  return find_rate(peaks, device_id, "bandwidth", hw::kMemoryStream);
}

std::string Basis::memory_peak_in_words(std::int64_t device_id) const {
  const PeakRate* best = memory_peak(device_id);
  if (best == nullptr || best->source != "measured") return "";
  const auto streams = std::count_if(peaks.begin(), peaks.end(), [&](const PeakRate& rate) {
    return rate.device_id == device_id && rate.quantity == "bandwidth" && hw::is_memory_stream(rate.type) &&
           rate.source == "measured";
  });
  return streams > 1 ? fmt::format("{}, the fastest of {} streams", best->type, streams) : best->type;
}

const PeakRate* Basis::peak(std::string_view quantity, std::string_view type) const {
  return device_ids.empty() ? nullptr : find_rate(peaks, device_ids.front(), quantity, type);
}

std::optional<PeakRate> Basis::total_peak(std::string_view quantity, std::string_view type) const {
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

const model::Graph* Basis::graph_of(std::int64_t process_id) const {
  if (const auto part = part_of.find(process_id); part != part_of.end()) return &parts[part->second];
  if (!job.known) return nullptr;
  return whole ? &*whole : nullptr;
}

std::string Basis::key() const {
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
Result<void> divide_model(const model::Config& whole, Basis& basis) {
  const ParallelGroups& groups = basis.job.groups;
  const model::Parallel parallel{.tensor = groups.tensor, .pipeline = groups.pipeline, .expert = groups.expert};
  std::map<std::vector<double>, std::size_t> alike;
  for (const JobRank& rank : basis.job.ranks) {
    const RankPlace& at = rank.place;
    LLMPROF_LET(const model::Config config,
                model::shard(whole, parallel, {.tensor = at.tensor, .pipeline = at.pipeline, .expert = at.expert}));
    model::Graph graph(config);
    std::vector<double> costs = costs_of(graph);
    costs.push_back(static_cast<double>(config.first_layer));
    const auto [known, fresh] = alike.try_emplace(std::move(costs), basis.parts.size());
    if (fresh) basis.parts.push_back(std::move(graph));
    for (const std::int64_t process : rank.processes) basis.part_of[process] = known->second;
  }
  // The layers of all pipeline ranks: what products are matched to.
  LLMPROF_LET(const model::Config layers, model::shard(whole, {.tensor = groups.tensor, .expert = groups.expert}, {}));
  basis.model.emplace(layers);
  return {};
}

Result<void> find_parts(const trace::Run& run, const Options& options, const FoundModel& found, Basis& basis) {
  JobSources sources{.option = options.parallel, .noted = run.info().parallel};
  for (std::size_t i = 0; i < basis.devices.size(); ++i) {
    if (!basis.devices[i].idle) sources.busy_devices.push_back(basis.device_ids[i]);
  }
  if (found.config) {
    sources.tensor = found.tensor;
    sources.part_is_model = found.source == "products";
    sources.hidden = found.config->hidden, sources.vocab = found.config->vocab;
    if (found.config->kinds.size() == 1 && found.config->kinds[0].mlp.experts == 0) {
      sources.layers = found.config->layers(), sources.width = found.config->kinds[0].mlp.width;
    }
  }
  LLMPROF_LET(basis.job, find_job(run, sources));
  if (!found.config) return {};
  basis.whole.emplace(*found.config);
  const bool divided = basis.job.groups.parts() > 1 || basis.job.groups.expert > 1;
  if (!sources.part_is_model && basis.job.known && divided) {
    const auto made = divide_model(*found.config, basis);
    if (made && !basis.parts.empty()) return {};
    if (made) {  // nothing executed: whoever declares steps has others compute for it
      basis.parts.push_back(*basis.whole);
      return {};
    }
    basis.parts.clear(), basis.part_of.clear();
    basis.job.known = false;
    basis.job.why = made.error().message;
  }
  basis.model = basis.whole;
  // Where every rank computes the same, be it all of the model or what was inferred from the products of one.
  if (!basis.job.known && !sources.part_is_model) return {};
  basis.parts.push_back(*basis.whole);
  for (const JobRank& rank : basis.job.ranks) {
    for (const std::int64_t process : rank.processes) basis.part_of[process] = 0;
  }
  return {};
}

}  // namespace

Result<Basis> find_basis(const trace::Run& run, const Options& options) {
  Basis basis;
  LLMPROF_LET(const FoundModel found, find_model(run, options));
  LLMPROF_TRY(find_devices(run, basis));
  take_model(found, basis);
  LLMPROF_TRY(find_parts(run, options, found, basis));
  LLMPROF_LET(basis.patterns, range_patterns(options.ranges, run.info().range_rules));
  return basis;
}

}  // namespace llmprof::analyze
