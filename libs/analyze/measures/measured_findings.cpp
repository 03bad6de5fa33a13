#include "analyze/measures/measured_findings.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/human.h"
#include "model/model.h"

namespace llmprof::analyze {

namespace {

constexpr double kTypeTolerance = 0.02;  // allocators round up; scales of quantised weights are far more
constexpr double kNearBandwidth = 0.6;   // of the peak: from here on fewer bytes pay more than better kernels

// The type whose size fits the memory that was measured; nullopt if none does.
std::optional<model::Number> type_of_size(double bytes) {
  for (const char* type : {"float32", "bfloat16", "int8", "int4"}) {
    const std::optional<model::Number> number = model::number_of(type);
    if (number && std::fabs(bytes / number->bytes - 1) <= kTypeTolerance) return number;
  }
  return std::nullopt;
}

void find_type(model::Config& config, MeasuredFindings& out) {
  out.stored_type = config.weight.type;
  out.type_bytes = config.weight.bytes;
  if (!out.weights_bytes || out.parameters <= 0) return;
  out.bytes_per_parameter = *out.weights_bytes / static_cast<double>(out.parameters);
  const std::optional<model::Number> type = type_of_size(*out.bytes_per_parameter);
  if (!type) {
    out.caveats.push_back(fmt::format("{:.3f} bytes per parameter fit no type; {} is assumed, as the config says",
                                      *out.bytes_per_parameter, config.weight.type));
    return;
  }
  config.set_type(*type);
  config.quantization.reset();
  config.stored.clear();
  out.stored_type = type->bytes == 2 ? "float16 or bfloat16" : type->type;
  out.type_bytes = type->bytes;
  out.type_inferred = true;
}

bool is_linear(model::OpClass op_class) {
  return op_class == model::OpClass::kProjection || op_class == model::OpClass::kLogits ||
         op_class == model::OpClass::kRouter;
}

bool has_experts(const model::Config& config) {
  return std::any_of(config.kinds.begin(), config.kinds.end(),
                     [](const model::LayerKind& kind) { return kind.mlp.experts > 0; });
}

std::int64_t linears_of(const model::Graph& graph) {
  const auto count = [](const model::Graph::Group& group) {
    return std::count_if(group.ops.begin(), group.ops.end(),
                         [](const model::Op& op) { return is_linear(op.op_class) && op.use != model::Use::kTraining; });
  };
  std::int64_t all = count(graph.first()) + count(graph.last());
  for (const model::Graph::Group& group : graph.groups())
    all += count(group) * static_cast<std::int64_t>(group.layers.size());
  return all;
}

void find_passes(const model::Graph& graph, const MeasuredTable& table, MeasuredFindings& out) {
  if (has_experts(graph.config())) {
    out.caveats.emplace_back("how many experts a pass calls depends on its tokens: passes cannot be counted");
    return;
  }
  out.linears_per_pass = linears_of(graph);
  const MeasuredRow* row = nullptr;
  for (const char* name : {"aten::linear", "aten::addmm", "aten::mm"}) {
    if (row == nullptr) row = table.find(name);
  }
  if (row == nullptr || out.linears_per_pass == 0) {
    out.caveats.emplace_back("the table has no row aten::linear, aten::addmm or aten::mm: passes cannot be counted");
    return;
  }
  out.linear_name = row->name;
  out.linear_calls = row->calls;
  const std::int64_t passes = row->calls / out.linears_per_pass;
  if (passes == 0 || passes * out.linears_per_pass != row->calls) {
    out.caveats.push_back(
        fmt::format("{} calls of {} are not a whole number of passes over the model's {} linear layers", row->calls,
                    row->name, out.linears_per_pass));
    return;
  }
  out.passes = passes;
  if (row->device_ns) out.linear_ns = *row->device_ns / static_cast<double>(passes);
}

// A pass over one token: what decoding repeats. A pass over a prompt reads the same weights.
void find_traffic(const model::Graph& graph, const design::Roof& roof, MeasuredFindings& out) {
  for (const model::OpCost& op : model::analyze_by_op(graph, model::decode(1, 1), {})) {
    if (!is_linear(op.op_class)) continue;
    out.linear_bytes += op.weight_bytes;
    out.linear_flops += op.flops;
  }
  out.bandwidth = hw::bandwidth_peak(roof.peaks);
  out.arithmetic = hw::flops_peak(roof.peaks, graph.config().arithmetic, roof.device);
  if (out.bandwidth && out.arithmetic) {
    const hw::Floor floor = hw::floor_of(hw::time_ns(out.linear_flops, out.arithmetic->per_second),
                                         hw::time_ns(out.linear_bytes, out.bandwidth->per_second));
    if (floor.bound() != "unknown") out.linear_floor_ns = floor.ns;
    out.linear_bound = floor.bound();
  } else {
    out.floor_why = roof.known() ? roof.device + " has no peak for this" : roof.why;
  }
  if (!out.linear_ns || *out.linear_ns <= 0) return;
  out.linear_bytes_per_s = out.linear_bytes / (*out.linear_ns * 1e-9);
  if (out.bandwidth) out.linear_share_of_bandwidth = *out.linear_bytes_per_s / out.bandwidth->per_second;
}

void find_shares(const MeasuredTable& table, MeasuredFindings& out) {
  out.cpu_total_ns = table.cpu_total_ns;
  out.device_total_ns = table.device_total_ns;
  if (out.cpu_total_ns && out.device_total_ns && *out.cpu_total_ns > 0)
    out.busy = *out.device_total_ns / *out.cpu_total_ns;
  const auto add = [&](const char* what, const MeasuredRow& row, const std::optional<double>& ns) {
    if (!ns || *ns <= 0) return;
    MeasuredFindings::Share share{what, row.name, *ns, {}};
    if (out.device_total_ns && *out.device_total_ns > 0) share.of_device = *ns / *out.device_total_ns;
    out.shares.push_back(std::move(share));
  };
  if (const MeasuredRow* row = table.find(out.linear_name)) add("linear layers", *row, row->device_ns);
  if (const MeasuredRow* row = table.find("aten::scaled_dot_product_attention")) add("attention", *row, row->device_ns);
  for (const MeasuredRow& row : table.rows) {
    if (row.name.starts_with("Memcpy ")) add("copies", row, row.self_device_ns);
  }
}

std::string percent(double fraction) { return fmt::format("{:.0f} %", fraction * 100); }

void conclude_linear(MeasuredFindings& out) {
  if (!out.linear_share_of_bandwidth || !out.passes) return;
  const double all_ns = *out.linear_ns * static_cast<double>(*out.passes);
  if (out.linear_bound == "memory" && *out.linear_share_of_bandwidth >= kNearBandwidth) {
    const std::string half = out.type_bytes >= 4 ? "float16" : out.type_bytes >= 2 ? "8-bit weights" : "4-bit weights";
    out.follows.push_back(
        fmt::format("The linear layers are near the bandwidth's floor: half the bytes ({}) would make them up to 2x "
                    "faster, {} of {}.",
                    half, base::human_ns(all_ns / 2), base::human_ns(all_ns)));
    out.follows.push_back(fmt::format("Better kernels for the same bytes are worth {} of their time at most.",
                                      percent(1 - std::min(1.0, *out.linear_share_of_bandwidth))));
  } else if (out.linear_floor_ns && *out.linear_floor_ns < *out.linear_ns) {
    out.follows.push_back(fmt::format("The linear layers take {:.1f}x their floor: better kernels could save {} of {}.",
                                      *out.linear_ns / *out.linear_floor_ns,
                                      percent(1 - *out.linear_floor_ns / *out.linear_ns), base::human_ns(all_ns)));
  }
}

void conclude(MeasuredFindings& out) {
  if (out.busy && *out.busy < 0.8) {
    out.follows.push_back(
        fmt::format("The device works {} of the time: {} are the host's, launching, copying or loading.",
                    percent(*out.busy), base::human_ns(*out.cpu_total_ns - *out.device_total_ns)));
  }
  conclude_linear(out);
  for (const MeasuredFindings::Share& share : out.shares) {
    if (share.what != "copies" || share.of_device.value_or(0) < 0.05) continue;
    const bool pageable = share.name.find("Pageable") != std::string::npos;
    out.follows.push_back(
        fmt::format("{}: {} of the device's time{}.", share.name, percent(*share.of_device),
                    pageable ? "; from pinned memory, or once and in the type that is used, it is less" : ""));
  }
}

}  // namespace

MeasuredFindings explain(const model::Config& given, const MeasuredTable& table, std::optional<double> weights_bytes,
                         const design::Roof& roof) {
  MeasuredFindings out;
  model::Config config = given;
  out.parameters = model::parameters(model::Graph(config));
  out.weights_bytes = weights_bytes;
  find_type(config, out);
  const model::Graph graph(config);
  find_passes(graph, table, out);
  find_traffic(graph, roof, out);
  find_shares(table, out);
  conclude(out);
  return out;
}

}  // namespace llmprof::analyze
