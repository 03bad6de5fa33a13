#include "base/strings.h"

#include <fmt/format.h>

#include "report/design/page.h"

namespace llmprof::report {
namespace {

using analyze::design::Floor;
using analyze::design::Row;
using analyze::design::SweepPoint;

std::string cell(double value) { return fmt::format("{}", value); }
std::string cell(const std::optional<double>& value) { return value ? cell(*value) : ""; }

std::string floor_cells(const Floor& floor) {
  return fmt::format("{},{},{},{}", floor.bound(), cell(floor.compute_ns), cell(floor.memory_ns), cell(floor.ns));
}

void add_row(const std::string& stage, const Row& row, bool per_layer, std::string& out) {
  const std::string name = base::csv_text(row.name);
  out += per_layer ? fmt::format("{},{},{},{}", stage, name, row.layers, row.parameters)
                   : fmt::format("{},{},{},{}", stage, name, row.layers, base::csv_text(row.arithmetic));
  out += fmt::format(",{},{},{},{},{},{}\n", cell(row.flops), cell(row.weight_bytes), cell(row.kv_bytes),
                     cell(row.activation_bytes), cell(row.intensity), floor_cells(row.floor));
}

std::string pass_cells(const SweepPoint::Pass& pass) {
  return fmt::format("{},{},{},{}", cell(pass.flops), cell(pass.bytes), cell(pass.intensity()),
                     floor_cells(pass.floor));
}

std::string pass_titles(std::string_view name) {
  return fmt::format("{0}_flops,{0}_bytes,{0}_flops_per_byte,{0}_bound,{0}_compute_ns,{0}_memory_ns,{0}_floor_ns",
                     name);
}

}  // namespace

std::string to_csv(const DesignPage& page) {
  std::string out = page.per_layer ? "stage,name,layers,parameters" : "stage,operator,layers,arithmetic";
  out += ",flops,weight_bytes,kv_bytes,activation_bytes,flops_per_byte,bound,compute_ns,memory_ns,floor_ns\n";
  for (const auto& stage : page.design.stages) {
    for (const Row& row : page.per_layer ? stage.layers : stage.operators)
      add_row(stage.name, row, page.per_layer, out);
  }
  return out;
}

std::string to_csv(const SweepPage& page) {
  const bool train = page.sweep.train;
  std::string out = train ? "batch,prompt,memory_bytes,fits,tokens_per_s," + pass_titles("step")
                          : "batch,prompt,context,memory_bytes,fits,tokens_per_s,tokens_per_s_per_sequence," +
                                pass_titles("prefill") + "," + pass_titles("decode");
  out += "\n";
  for (const SweepPoint& p : page.sweep.points) {
    const std::string fits = p.fits ? (*p.fits ? "true" : "false") : "";
    const std::string load = train ? fmt::format("{},{}", p.load.batch, p.load.prompt)
                                   : fmt::format("{},{},{}", p.load.batch, p.load.prompt, p.load.context);
    out += fmt::format("{},{},{},{},", load, cell(p.memory_bytes), fits, cell(p.tokens_per_s));
    if (!train) out += cell(p.tokens_per_s_per_sequence) + ",";
    out += pass_cells(p.first) + (train ? "" : "," + pass_cells(p.decode)) + "\n";
  }
  return out;
}

std::string to_csv(const DesignDiffPage& page) {
  std::string out = "part,name,unit,a,b,ratio\n";
  for (const auto& row : page.rows) {
    out += fmt::format("{},{},{},{},{},{}\n", row.part, base::csv_text(row.name), row.unit, cell(row.a), cell(row.b),
                       cell(row.ratio()));
  }
  return out;
}

}  // namespace llmprof::report
