#include <fmt/format.h>

#include "base/human.h"
#include "base/text_table.h"
#include "report/design/page.h"
#include "report/design/parts.h"
#include "report/page.h"

namespace llmprof::report {
namespace {

using analyze::design::Design;
using analyze::design::Reached;
using analyze::design::Row;
using analyze::design::Stage;
using base::Align;
using base::TextTable;

std::string parameter_section(const Design& d, const Style& style) {
  TextTable table({{"part", Align::kLeft}, {"parameters"}, {"% of all"}, {"bytes"}});
  for (const auto& part : d.parts) {
    table.add({part.part, grouped(part.parameters),
               percent_cell(static_cast<double>(part.parameters) / static_cast<double>(d.parameters)),
               base::human_bytes(part.bytes)});
  }
  std::string out = style.heading(fmt::format("Parameters: {} ({})", grouped(d.parameters), d.weights_source));
  if (d.active_parameters < d.parameters) {
    out += wrapped(fmt::format("{} of them take part in the pass of one token.", grouped(d.active_parameters)));
  }
  return out + table.render(kWidth);
}

std::string longest_context(const analyze::design::Memory& m) {
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
    const std::string text = table_.render(kWidth);
    return text.substr(text.find('\n') + 1);
  }

 private:
  TextTable table_{{{"", Align::kLeft}, {"", Align::kLeft}}};
};

std::string of_each_device(const Design& d) {
  return d.devices > 1 ? fmt::format(" of each of {} devices (analytic)", d.devices) : " (analytic)";
}

std::string memory_section(const Design& d, const Style& style) {
  const analyze::design::Memory& m = d.memory;
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

std::string training_section(const Design& d, const Style& style) {
  const analyze::design::Training& t = *d.training;
  Facts facts;
  facts.bytes("weights", t.memory.weights);
  facts.bytes("gradients", t.memory.gradients);
  facts.bytes("moments of AdamW, float32", t.memory.moments);
  facts.bytes("activations kept", t.memory.activations);
  facts.bytes("needed", t.memory.total());
  if (t.fits) facts.device(d.roof.memory_bytes, *t.fits);
  return style.heading("Memory of training" + of_each_device(d)) + facts.render();
}

std::string step_section(const Design& d, const Style& style) {
  const analyze::design::Training& t = *d.training;
  TextTable table({{"FLOPs"}, {"computed again"}, {"step"}, {"tokens/s"}});
  table.add(
      {amount_cell(t.flops), amount_cell(t.recomputed_flops), floor_cell(t.step_ns), number_cell(t.tokens_per_s)});
  return style.heading("No training step can be faster") + table.render(kWidth) +
         wrapped("Forward, backward and optimizer one after the other; what is computed again is not in the time.");
}

std::string stage_table(const Design& d) {
  TextTable table({{"stage", Align::kLeft},
                   {"tokens"},
                   {"FLOPs"},
                   {"FLOP/token"},
                   {"bytes"},
                   {"B/token"},
                   {"FLOP/B"},
                   {"ridge"},
                   {"bound by", Align::kLeft},
                   {"floor"}});
  for (const Stage& s : d.stages) {
    table.add({s.name, s.tokens > 0 ? base::human_count(s.tokens) : "-", amount_cell(s.costs.flops),
               amount_cell(s.flops_per_token()), base::human_bytes(s.costs.bytes()), bytes_cell(s.bytes_per_token()),
               number_cell(s.intensity), number_cell(s.ridge), bound_cell(s.floor), floor_cell(s.floor.ns)});
  }
  return table.render(kWidth);
}

std::string byte_table(const Design& d) {
  TextTable table({{"bytes of", Align::kLeft}, {"weights"}, {"KV cache"}, {"activations"}, {"sent to others"}});
  for (const Stage& s : d.stages) {
    table.add({s.name, base::human_bytes(s.costs.weight_bytes), base::human_bytes(s.costs.kv_bytes),
               base::human_bytes(s.costs.activation_bytes), base::human_bytes(s.communication_bytes)});
  }
  return table.render(kWidth);
}

std::string stage_section(const Design& d, const Style& style) {
  std::string passes;
  for (const Stage& s : d.stages) passes += fmt::format("{}{}: {}", passes.empty() ? "" : "; ", s.name, s.what);
  return style.heading(d.roof.known() ? "Stages on " + d.roof.device + " (analytic)" : "Stages (analytic)") +
         wrapped(passes + ".") + stage_table(d) + wrapped(peaks_sentence(d)) + "\n" + byte_table(d);
}

std::string speed_section(const Design& d, const Style& style) {
  if (!d.speeds.tpot_ns && !d.speeds.ttft_ns) return "";
  TextTable table({{"TTFT"}, {"TPOT"}, {"tokens/s per sequence"}, {"tokens/s in total"}});
  table.add({floor_cell(d.speeds.ttft_ns), floor_cell(d.speeds.tpot_ns),
             number_cell(d.speeds.tokens_per_s_per_sequence), number_cell(d.speeds.tokens_per_s)});
  return style.heading("No run can be faster") + table.render(kWidth);
}

std::string reached_section(const DesignPage& page, const Style& style) {
  if (page.reached.empty()) return "";
  const bool hfu = page.design.training.has_value();
  std::vector<TextTable::Column> columns{
      {"stage", Align::kLeft}, {"from", Align::kLeft}, {"time"}, {"FLOP/s"}, {"MFU %"}};
  if (hfu) columns.push_back({"HFU %"});
  for (const char* title : {"B/s", "MBU %", "floor", "floor %"}) columns.push_back({title});
  TextTable table(std::move(columns));
  std::string whys;
  for (const Reached& r : page.reached) {
    std::vector<std::string> cells{r.stage, r.from, floor_cell(r.time_ns), amount_cell(r.flops_per_s),
                                   percent_cell(r.mfu)};
    if (hfu) cells.push_back(percent_cell(r.hfu));
    cells.push_back(amount_cell(r.bytes_per_s));
    cells.push_back(percent_cell(r.mbu));
    cells.push_back(floor_cell(r.floor_ns));
    cells.push_back(percent_cell(r.floor_share));
    table.add(std::move(cells));
    if (!r.why.empty()) whys += wrapped(r.stage + ": " + r.why + ".");
  }
  return style.heading("Measured against the model") + table.render(kWidth) +
         wrapped(
             "MFU: model FLOPs / time / peak FLOP/s. MBU: bytes that must move / time / bandwidth. floor %: floor / "
             "time. " +
             peaks_sentence(page.design)) +
         whys;
}

std::vector<std::string> row_cells(const Row& row, std::string count) {
  return {row.name,
          std::move(count),
          amount_cell(row.flops),
          base::human_bytes(row.weight_bytes),
          base::human_bytes(row.kv_bytes),
          base::human_bytes(row.activation_bytes),
          number_cell(row.intensity),
          bound_cell(row.floor),
          floor_cell(row.floor.ns),
          percent_cell(row.share)};
}

TextTable row_table(const char* first, const char* second) {
  return TextTable({{first, Align::kLeft, true},
                    {second},
                    {"FLOPs"},
                    {"weights"},
                    {"KV"},
                    {"activ."},
                    {"FLOP/B"},
                    {"bound by", Align::kLeft},
                    {"floor"},
                    {"%"}});
}

std::string operator_section(const DesignPage& page, const Stage& stage, const Style& style) {
  TextTable table = row_table("operator", "layers");
  std::size_t costly = 0, free = 0;
  for (const Row& row : stage.operators) {
    const bool costs = row.flops + row.bytes() > 0;
    free += costs ? 0 : 1;
    costly += costs ? 1 : 0;
    if (costs && costly <= page.top) table.add(row_cells(row, row.layers > 0 ? std::to_string(row.layers) : "-"));
  }
  std::string out = style.heading("Operators of " + stage.name) + table.render(kWidth);
  if (costly > page.top) out += fmt::format("  {} more; --top shows more.\n", costly - page.top);
  if (free > 0) out += fmt::format("  {} more cost nothing: what they touch, if anything, stays on chip.\n", free);
  return out;
}

std::string layer_section(const Stage& stage, const Style& style) {
  TextTable table = row_table("layers", "parameters");
  for (const Row& row : stage.layers) table.add(row_cells(row, amount_cell(static_cast<double>(row.parameters))));
  return style.heading("Layers of " + stage.name) + table.render(kWidth);
}

}  // namespace

std::string to_text(const DesignPage& page, bool colour) {
  const Style style{colour};
  const Design& d = page.design;
  std::string out = head_section(d, style) + parameter_section(d, style);
  if (d.training) out += training_section(d, style);
  if (!d.training) out += memory_section(d, style);
  out += stage_section(d, style) + (d.training ? step_section(d, style) : speed_section(d, style));
  out += reached_section(page, style);
  for (const Stage& stage : d.stages) {
    if (page.per_layer) out += layer_section(stage, style);
    if (page.per_op) out += operator_section(page, stage, style);
  }
  if (d.speeds.tpot_ns || (d.training && d.training->step_ns)) {
    out += wrapped(
        "%: of the floors added up. They are more than the stage's floor, in which work that memory bounds and work "
        "that arithmetic bounds overlap.");
  }
  return out;
}

}  // namespace llmprof::report
