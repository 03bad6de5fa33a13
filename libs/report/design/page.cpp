#include "report/design/page.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/human.h"
#include "base/text_table.h"
#include "report/page.h"

// What the structs of a design say beside their fields.
namespace llmprof::hw {
base::Json fields_json(const Floor& floor) {
  base::Json all = base::fields_json<Floor>(floor);
  all["bound"] = floor.bound();
  return all;
}
}  // namespace llmprof::hw

namespace llmprof::model {
base::Json fields_json(const Costs& costs) {
  base::Json all = base::fields_json<Costs>(costs);
  all["bytes"] = costs.bytes();
  return all;
}
base::Json fields_json(const PassCosts& costs) {
  base::Json all = fields_json(static_cast<const Costs&>(costs));
  all["flops_by_type"] = base::fields_json(costs.flops_by_type);
  return all;
}
}  // namespace llmprof::model

namespace llmprof::analyze::design {
base::Json fields_json(const Row& row) {
  base::Json all = base::fields_json<Row>(row);
  if (row.parameters == 0) all.erase("parameters");  // only those of layers are known
  return all;
}
base::Json fields_json(const Stage& stage) {
  base::Json all = base::fields_json<Stage>(stage);
  all["flops_per_token"] = base::maybe(stage.flops_per_token());
  all["bytes_per_token"] = base::maybe(stage.bytes_per_token());
  return all;
}
base::Json fields_json(const Memory& memory) {
  base::Json all = base::fields_json<Memory>(memory);
  all["needed_bytes"] = memory.needed();
  return all;
}
base::Json fields_json(const Training& training) {
  base::Json all = base::fields_json<Training>(training);
  all["needed_bytes"] = training.memory.total();
  return all;
}
base::Json fields_json(const DiffRow& row) {
  base::Json all = base::fields_json<DiffRow>(row);
  all["ratio"] = base::maybe(row.ratio());
  return all;
}
}  // namespace llmprof::analyze::design

namespace llmprof::report {
namespace {

namespace design = analyze::design;
using base::fields_json;
using base::Json;
using base::text_or_null;

Json model_facts(const design::Design& d) {
  const model::Config& c = d.config;
  Json out{{"name", text_or_null(c.name)},
           {"origin", text_or_null(d.origin)},
           {"family", c.family},
           {"layers", c.layers()},
           {"hidden", c.hidden},
           {"vocabulary", c.vocab},
           {"positions", c.positions},
           {"tied_embeddings", c.tied_embeddings},
           {"architecture", d.architecture},
           {"weight", fields_json(c.weight)},
           {"kv", fields_json(c.kv)},
           {"activation", fields_json(c.activation)},
           {"arithmetic", c.arithmetic},
           {"weights_source", d.weights_source}};
  out["quantization"] = nullptr, out["checkpoint"] = nullptr;
  if (c.quantization) out["quantization"] = fields_json(*c.quantization);
  if (d.checkpoint) {
    out["checkpoint"] = {{"format", d.checkpoint->format},
                         {"files", d.checkpoint->files},
                         {"tensors", d.checkpoint->tensors},
                         {"parameters", d.checkpoint->parameters},
                         {"bytes", d.checkpoint->bytes}};
  }
  return out;
}

Json device_facts(const design::Design& d) {
  if (!d.roof.known()) return {{"why", d.roof.why}};
  Json out = fields_json(d.roof);
  out["devices"] = d.devices;
  out["flops_peaks"] = fields_json(d.peaks);
  out["bandwidth_peak"] = fields_json(d.bandwidth);
  return out;
}

std::string source_of(const design::UsedPeak& peak) {
  return peak.method.empty() ? peak.source : fmt::format("{}: {}", peak.source, peak.method);
}

std::string model_line(const design::Design& d) {
  const auto& c = d.config;
  std::string line = fmt::format("{}: {}, {} layers, hidden {}, vocabulary {}", model_name(d), c.family, c.layers(),
                                 c.hidden, c.vocab);
  if (c.positions > 0) line += fmt::format(", {} positions", c.positions);
  return line;
}

std::string parameter_section(const design::Design& d, Json parts, const TableText& tables, const Style& style) {
  for (Json& part : parts) part["share"] = part["parameters"].get<double>() / static_cast<double>(d.parameters);
  std::string out = style.heading(fmt::format("Parameters: {} ({})", grouped(d.parameters), d.weights_source));
  if (d.active_parameters < d.parameters) {
    out += wrapped(fmt::format("{} of them take part in the pass of one token.", grouped(d.active_parameters)));
  }
  return out + tables.rows("llmprof.model.parameters.parts[]", parts, SIZE_MAX);
}

std::string longest_context(const design::Memory& m) {
  if (!m.longest_context) return "-";
  if (*m.longest_context == 0) return "none fits";
  return grouped(*m.longest_context) + (m.context_ends_with_model ? " (all the model was made for)" : "");
}

// Lines of a name and a value.
class Facts {
 public:
  void add(std::string name, std::string value) { table_.add({std::move(name), std::move(value)}); }
  void bytes(std::string name, double value) { add(std::move(name), base::human_bytes(value)); }
  void device(double bytes, bool fits) {
    add("memory of the device", fmt::format("{}: {}", base::human_bytes(bytes), fits ? "it fits" : "it does not fit"));
  }
  std::string render() const {  // without the line of titles
    const std::string text = table_.render(line_width());
    return text.substr(text.find('\n') + 1);
  }

 private:
  base::TextTable table_{{{"", base::Align::kLeft}, {"", base::Align::kLeft}}};
};

std::string of_each_device(const design::Design& d) {
  return d.devices > 1 ? fmt::format(" of each of {} devices (analytic)", d.devices) : " (analytic)";
}

std::string memory_section(const design::Design& d, const Style& style) {
  const design::Memory& m = d.memory;
  Facts facts;
  facts.bytes("weights", m.weights);
  facts.bytes("KV cache per token", m.kv_per_token);
  facts.bytes(fmt::format("KV cache of {} x {} tokens", d.options.batch, d.options.context), m.kv);
  facts.bytes("activations, at least", m.activations);
  facts.bytes("needed", m.needed());
  if (m.device) {
    facts.device(*m.device, *m.fits);
    facts.add("left for the KV cache", *m.left_for_kv > 0 ? base::human_bytes(*m.left_for_kv) : "nothing");
    facts.add(fmt::format("longest context with batch {}", d.options.batch), longest_context(m));
    facts.add(fmt::format("largest batch at context {}", d.options.context),
              *m.largest_batch > 0 ? grouped(*m.largest_batch) : "none fits");
  }
  return style.heading("Memory" + of_each_device(d)) + facts.render();
}

std::string training_section(const design::Design& d, const Style& style) {
  const design::Training& t = *d.training;
  Facts facts;
  facts.bytes("weights", t.memory.weights);
  facts.bytes("gradients", t.memory.gradients);
  facts.bytes("moments of AdamW, float32", t.memory.moments);
  facts.bytes("activations kept", t.memory.activations);
  facts.bytes("needed", t.memory.total());
  if (t.fits) facts.device(d.roof.memory_bytes, *t.fits);
  return style.heading("Memory of training" + of_each_device(d)) + facts.render();
}

std::string stage_section(const design::Design& d, const TableText& tables, const Style& style) {
  std::string passes;
  for (const design::Stage& s : d.stages) passes += fmt::format("{}{}: {}", passes.empty() ? "" : "; ", s.name, s.what);
  const Json& stages = tables.report()["stages"];
  return style.heading(d.roof.known() ? "Stages on " + d.roof.device + " (analytic)" : "Stages (analytic)") +
         wrapped(passes + ".") + tables.rows("llmprof.model.stages[]#costs", stages, SIZE_MAX) +
         wrapped(peaks_sentence(d)) + "\n" + tables.rows("llmprof.model.stages[]#bytes", stages, SIZE_MAX);
}

// An object as the only row.
std::string one_row(const TableText& tables, std::string_view path, const Json& object, const Style& style) {
  return style.heading(tables.title(path)) + tables.rows(path, Json::array({object})) + tables.notes(path);
}

std::string reached_section(const design::Design& d, const TableText& tables, const Style& style) {
  constexpr std::string_view kPath = "llmprof.model.measured[]#table";
  const Json& rows = tables.report()["measured"];
  if (rows.empty()) return "";
  std::string out = style.heading(tables.title(kPath)) + tables.rows(kPath, rows, SIZE_MAX) +
                    wrapped(
                        "MFU: model FLOPs / time / peak FLOP/s. MBU: bytes that must move / time / bandwidth. "
                        "floor %: floor / time. " +
                        peaks_sentence(d));
  for (const Json& row : rows) {
    if (!row["why"].is_null()) out += wrapped(fmt::format("{}: {}.", text_at(row, "stage"), text_at(row, "why")));
  }
  return out;
}

std::string operator_section(const Json& stage, const TableText& tables, const Style& style) {
  constexpr std::string_view kPath = "llmprof.model.stages[].operators[]#table";
  Json costly = Json::array();
  for (const Json& row : stage["operators"]) {
    if (row["flops"].get<double>() + row["bytes"].get<double>() > 0) costly.push_back(row);
  }
  const std::size_t free = stage["operators"].size() - costly.size();
  std::string out = style.heading(tables.title(kPath) + " " + text_at(stage, "name")) + tables.rows(kPath, costly);
  if (free > 0) out += fmt::format("  {} more cost nothing: what they touch, if anything, stays on chip.\n", free);
  return out;
}

std::string layer_section(const Json& stage, const TableText& tables, const Style& style) {
  constexpr std::string_view kPath = "llmprof.model.stages[].layers[]#table";
  return style.heading(tables.title(kPath) + " " + text_at(stage, "name")) +
         tables.rows(kPath, stage["layers"], SIZE_MAX);
}

std::string value_text(const std::optional<double>& value, std::string_view unit) {
  if (!value) return "-";
  if (unit == "B") return base::human_bytes(*value);
  if (unit == "ns") return base::human_ns(*value);
  if (unit == "") return *value < 1e15 ? grouped(static_cast<std::int64_t>(*value)) : base::human_count(*value);
  return base::human_rate(*value, std::string(unit).c_str());
}

std::string subject_of(const design::Design& d) {
  const std::string devices = d.devices > 1 ? fmt::format("{} x ", d.devices) : "";
  const std::string on = d.roof.known() ? fmt::format(" on {}{}", devices, d.roof.device) : "";
  return fmt::format("{}{}; {}", model_name(d), on, d.types);
}

// "batch 1, prompt 1024, context 1024"; both have the same unless a model is made for less.
std::string load_of(const design::Design& d) {
  const std::string context = d.training ? "" : fmt::format(", context {}", d.options.context);
  return fmt::format("batch {}, prompt {}{}", d.options.batch, d.options.prompt, context);
}

// Lines of both once, the others with the name of whose they are.
std::string shared_lines(const char* mark, const std::vector<std::string>& a, const std::vector<std::string>& b) {
  const auto in = [](const std::vector<std::string>& lines, const std::string& line) {
    return std::ranges::find(lines, line) != lines.end();
  };
  std::string out;
  for (const std::string& line : a) out += wrapped(fmt::format("{}{}{}", mark, in(b, line) ? "" : "A: ", line));
  for (const std::string& line : b) {
    if (!in(a, line)) out += wrapped(fmt::format("{}B: {}", mark, line));
  }
  return out;
}

}  // namespace

std::string model_name(const design::Design& d) { return d.config.name.empty() ? "model" : d.config.name; }

std::string peaks_sentence(const design::Design& d) {
  if (!d.roof.known()) return "";
  std::string text;
  for (const design::UsedPeak& peak : d.peaks) {
    const std::string as = peak.note.empty() ? "" : " as " + peak.peak_type;
    text += fmt::format("Peak of {}{}: {} ({}). ", peak.type, as, base::human_rate(peak.per_second, "FLOP/s"),
                        source_of(peak));
  }
  if (d.bandwidth) {
    text +=
        fmt::format("Bandwidth: {} ({}).", base::human_rate(d.bandwidth->per_second, "B/s"), source_of(*d.bandwidth));
  }
  return text;
}

std::string head_section(const design::Design& d, const Style& style) {
  std::string out = wrapped(model_line(d), 0);
  for (const std::string& sentence : d.architecture) out += wrapped(sentence);
  out += wrapped(d.types + (d.origin.empty() ? "" : "; from " + d.origin));
  out += style.heading("Read first");
  for (const std::string& caveat : d.caveats) out += wrapped("! " + caveat);
  for (const std::string& note : d.notes) out += wrapped("- " + note);
  return out;
}

Json head_facts(const design::Design& d) {
  const auto& o = d.options;
  return {{"model", model_facts(d)},
          {"options",
           {{"batch", o.batch},
            {"prompt", o.prompt},
            {"context", o.context},
            {"mixed", fields_json(o.mixed)},
            {"train", o.train},
            {"parallel", fields_json(o.parallel)}}},
          {"device", device_facts(d)},
          {"caveats", d.caveats},
          {"notes", d.notes}};
}

std::string to_text(const DesignPage& page, bool colour) {
  const Style style{colour};
  const design::Design& d = page.design;
  Json document;
  to_json(page, document);
  const TableText tables(document, d.training ? Flags{"training"} : Flags{}, page.top);
  std::string out = head_section(d, style) + parameter_section(d, document["parameters"]["parts"], tables, style);
  out += (d.training ? training_section(d, style) : memory_section(d, style)) + stage_section(d, tables, style);
  if (d.training) {
    out += one_row(tables, "llmprof.model.training#step", document["training"], style);
  } else if (d.speeds.tpot_ns || d.speeds.ttft_ns) {
    out += one_row(tables, "llmprof.model.speeds#table", document["speeds"], style);
  }
  out += reached_section(d, tables, style);
  for (const Json& stage : document["stages"]) {
    if (page.per_layer) out += layer_section(stage, tables, style);
    if (page.per_op) out += operator_section(stage, tables, style);
  }
  if (d.speeds.tpot_ns || (d.training && d.training->step_ns)) {
    out += wrapped(
        "%: of the floors added up. They are more than the stage's floor, in which work that memory bounds and work "
        "that arithmetic bounds overlap.");
  }
  return out;
}

std::string to_text(const DesignDiffPage& page, bool colour) {
  constexpr std::string_view kPath = "llmprof.model_diff.rows[]#table";
  const Style style{colour};
  const bool same_load = load_of(page.a) == load_of(page.b);
  std::string out;
  for (const auto& [name, design] : {std::pair{"A", &page.a}, std::pair{"B", &page.b}}) {
    out += wrapped(fmt::format("{}: {}{}", name, subject_of(*design), same_load ? "" : "; " + load_of(*design)), 0);
  }
  out += style.heading("Read first");
  out += shared_lines("! ", page.a.caveats, page.b.caveats) + shared_lines("- ", page.a.notes, page.b.notes);
  Json rows = Json::array();
  std::string part;
  std::int64_t same = 0;
  for (const design::DiffRow& row : page.rows) {
    if (row.a && row.a == row.b) {
      ++same;
      continue;
    }
    rows.push_back(fields_json(row));
    rows.back()["group"] = part == row.part ? "" : row.part;
    rows.back()["a_text"] = value_text(row.a, row.unit), rows.back()["b_text"] = value_text(row.b, row.unit);
    part = row.part;
  }
  const TableText tables(rows);
  out += style.heading(tables.title(kPath) + (same_load ? ": " + load_of(page.a) : "")) + tables.rows(kPath, rows);
  if (same > 0)
    out += wrapped(counted(same, "row") + (same == 1 ? " is" : " are") + " the same in both: --json has them.");
  const std::string a = peaks_sentence(page.a), b = peaks_sentence(page.b);
  return out + (a == b ? wrapped(a) : wrapped("A: " + a) + wrapped("B: " + b));
}

void to_json(const DesignPage& page, Json& out) {
  const design::Design& d = page.design;
  Json all = head_facts(d);
  all["parameters"] = {{"total", d.parameters}, {"active", d.active_parameters}, {"parts", fields_json(d.parts)}};
  all["memory"] = fields_json(d.memory), all["stages"] = fields_json(d.stages);
  all["speeds"] = fields_json(d.speeds), all["training"] = fields_json(d.training);
  all["measured"] = fields_json(page.reached);
  out.update(described("llmprof.model", all));
}

void to_json(const DesignDiffPage& page, Json& out) {
  out["a"] = described("llmprof.model", head_facts(page.a));
  out["b"] = described("llmprof.model", head_facts(page.b));
  out["rows"] = described_fields("llmprof.model_diff.rows[]", page.rows);
}

std::string to_csv(const DesignPage& page) {
  Json rows = Json::array();
  for (const design::Stage& stage : page.design.stages) {
    for (Json& row :
         described_fields("llmprof.model.stages[].operators[]", page.per_layer ? stage.layers : stage.operators)) {
      row["stage"] = stage.name, row["operator"] = row["name"], row.emplace("parameters", 0);
      rows.push_back(std::move(row));
    }
  }
  std::vector<std::string> keys = {"stage", "operator", "layers", "arithmetic"};
  if (page.per_layer) keys = {"stage", "name", "layers", "parameters"};
  for (const char* key : {"flops", "weight_bytes", "kv_bytes", "activation_bytes", "flops_per_byte", "bound",
                          "compute_ns", "memory_ns", "floor_ns"})
    keys.emplace_back(key);
  return to_csv(keys, rows);
}

std::string to_csv(const DesignDiffPage& page) { return to_csv("llmprof.model_diff.rows[]", fields_json(page.rows)); }

}  // namespace llmprof::report
