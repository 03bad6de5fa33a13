#include "analyze/model/kernel_roofline.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/strings.h"
#include "hw/roof.h"

namespace llmprof::analyze {

namespace {

constexpr std::string_view kTensor = "sm__ops_path_tensor_";

class KernelMetrics {
 public:
  explicit KernelMetrics(const KernelCounters& counters) : counters_(counters) {}

  std::optional<double> get(const std::string& metric) const {
    const auto found = counters_.values.find(metric);
    return found == counters_.values.end() ? std::nullopt : std::optional(found->second);
  }
  // What was counted over the whole kernel; some sets of metrics hold only rates.
  std::optional<double> total(const std::string& counter) const {
    if (const auto sum = get(counter + ".sum")) return sum;
    if (const auto rate = get(counter + ".sum.per_second")) return *rate * seconds();
    const auto per_cycle = get(counter + ".sum.per_cycle_elapsed");
    const auto cycles = cycles_of(counter.substr(0, counter.find("__")));
    return per_cycle && cycles ? std::optional(*per_cycle * *cycles) : std::nullopt;
  }
  // A rate per cycle at most, as one per second.
  std::optional<double> peak(const std::string& counter) const {
    if (const auto rate = get(counter + ".sum.peak_sustained_elapsed.per_second")) return rate;
    const auto per_cycle = get(counter + ".sum.peak_sustained");
    const std::string unit = counter.substr(0, counter.find("__"));
    auto clock = get(unit + "__cycles_elapsed.avg.per_second");
    return per_cycle && clock ? std::optional(*per_cycle * *clock) : std::nullopt;
  }
  double seconds() const { return counters_.time_ns / 1e9; }

  const std::map<std::string, double, std::less<>>& values() const { return counters_.values; }

 private:
  std::optional<double> cycles_of(const std::string& unit) const {
    if (const auto cycles = get(unit + "__cycles_elapsed.avg")) return cycles;
    const auto clock = get(unit + "__cycles_elapsed.avg.per_second");
    return clock ? std::optional(*clock * seconds()) : std::nullopt;
  }
  const KernelCounters& counters_;
};

constexpr std::string_view kPlainCores = " (plain cores)";

struct Arithmetic {
  std::string type;
  bool tensor = false;
  double flops = 0;
  std::optional<double> peak;
  std::string source;
  std::string name() const { return tensor ? type : type + std::string(kPlainCores); }
};

// "sm__ops_path_tensor_op_hgmma_src_bf16_dst_fp32_sparsity_off.sum" -> "bf16"
std::string source_type(std::string_view counter) {
  const std::size_t at = counter.find("src_");
  if (at == std::string_view::npos) return {};
  counter.remove_prefix(at + 4);
  return std::string(counter.substr(0, counter.find_first_of("_.")));
}

std::string type_name(const std::string& source) {
  static const std::map<std::string, std::string> kNames{{"bf16", "bfloat16"}, {"fp16", "float16"}, {"tf32", "tf32"},
                                                         {"fp64", "float64"},  {"fp8", "float8"},   {"fp4", "float4"}};
  const auto found = kNames.find(source);
  return found == kNames.end() ? std::string() : found->second;
}

// The same operations are counted in total, by sparsity and by instruction: the most general that is there counts.
int detail_of(std::string_view counter) {
  if (base::contains(counter, "tensor_op_")) return 2;
  return base::contains(counter, "_sparsity_") ? 1 : 0;
}

std::vector<Arithmetic> tensor_arithmetic(const KernelMetrics& counters) {
  struct TensorWork {
    std::array<std::optional<double>, 3> flops;
    std::optional<double> dense_peak, other_peak;
    bool has_sparse = false;
  };
  std::map<std::string, TensorWork> types;
  std::string last;
  for (auto at = counters.values().lower_bound(kTensor);
       at != counters.values().end() && at->first.starts_with(kTensor); ++at) {
    const std::string counter = at->first.substr(0, at->first.find('.'));
    if (counter == last || type_name(source_type(counter)).empty()) continue;  // integers are no FLOPs
    last = counter;
    TensorWork& sums = types[source_type(counter)];
    if (const auto total = counters.total(counter)) {
      auto& flops = sums.flops[static_cast<std::size_t>(detail_of(counter))];
      flops = flops.value_or(0) + *total;
    }
    const bool dense = base::contains(counter, "sparsity_off");
    if (base::contains(counter, "sparsity_on")) sums.has_sparse = true;
    if (const auto peak = counters.peak(counter); peak && !base::contains(counter, "sparsity_on")) {
      auto& into = dense ? sums.dense_peak : sums.other_peak;
      into = std::max(into.value_or(0), *peak);
    }
  }
  std::vector<Arithmetic> result;
  for (const auto& [source, sums] : types) {
    const auto counted = std::ranges::find_if(sums.flops, [](const auto& flops) { return flops.has_value(); });
    if (counted == sums.flops.end()) continue;
    Arithmetic arithmetic{type_name(source), true, **counted, sums.dense_peak, "ncu"};
    // The peak of a total is the one with sparsity, twice the dense one, where the type has such a mode.
    if (!arithmetic.peak && !sums.has_sparse && source == "fp64") arithmetic.peak = sums.other_peak;
    result.push_back(std::move(arithmetic));
  }
  return result;
}

// FLOPs of plain cores: instructions of threads, an FMA is two; those of float16 work on pairs.
std::vector<Arithmetic> vector_arithmetic(const KernelMetrics& counters) {
  struct Kind {
    char letter;
    double lanes;
    std::string_view type;
  };
  std::vector<Arithmetic> result;
  for (const Kind kind : {Kind{'f', 1, "float32"}, Kind{'d', 1, "float64"}, Kind{'h', 2, "float16"}}) {
    const auto instruction = [&](const char* unit, const char* what) {
      return fmt::format("{}__sass_thread_inst_executed_op_{}{}_pred_on", unit, kind.letter, what);
    };
    const auto total = [&](const char* what) {
      const auto of_sm = counters.total(instruction("sm", what));
      return of_sm ? of_sm : counters.total(instruction("smsp", what));
    };
    const auto add = total("add"), multiply = total("mul"), both = total("fma");
    if (!add && !multiply && !both) continue;
    Arithmetic arithmetic{std::string(kind.type), false, 0, std::nullopt, "ncu"};
    arithmetic.flops = kind.lanes * (add.value_or(0) + multiply.value_or(0) + 2 * both.value_or(0));
    auto peak = counters.peak(instruction("sm", "fma"));
    if (!peak) peak = counters.peak(instruction("smsp", "fma"));
    if (peak) arithmetic.peak = *peak * 2 * kind.lanes;
    result.push_back(std::move(arithmetic));
  }
  return result;
}

std::optional<double> dram_bytes(const KernelMetrics& counters) {
  if (const auto all = counters.get("dram__bytes.sum")) return all;
  for (const char* names : {"dram__bytes_", "dram__bytes_op_"}) {  // the second on GB202
    const auto read = counters.total(std::string(names) + "read"), write = counters.total(std::string(names) + "write");
    if (read && write) return *read + *write;
  }
  return counters.total("dram__bytes");
}

void take_peak(Arithmetic& arithmetic, const std::vector<hw::Peak>& peaks) {
  if (arithmetic.peak) return;
  arithmetic.source.clear();
  const hw::Peak* peak = peak_of_arithmetic(arithmetic.name(), peaks);
  if (peak != nullptr) arithmetic.peak = peak->value, arithmetic.source = peak->source;
}

// What the kernel would take at the roof of its slowest arithmetic; kinds of arithmetic run beside each other.
std::optional<double> compute_ns(const std::vector<Arithmetic>& kinds, KernelRoofline& out) {
  double longest = 0;
  bool known = true;
  for (const Arithmetic& kind : kinds) {
    if (kind.flops <= 0) continue;
    const std::optional<double> ns = hw::time_ns(kind.flops, kind.peak);
    if (!ns) {
      known = false;
      out.missing.push_back("peak of " + kind.name());
      continue;
    }
    if (*ns <= longest) continue;
    longest = *ns;
    out.type = kind.name();
    out.peak_flops_per_s = kind.peak;
    out.peak_flops_source = kind.source;
  }
  return known ? std::optional(longest) : std::nullopt;
}

}  // namespace

const hw::Peak* peak_of_arithmetic(const std::string& type, const std::vector<hw::Peak>& peaks) {
  if (type.empty()) return nullptr;
  if (!type.ends_with(kPlainCores)) return hw::find_peak(peaks, "flops", type);
  return hw::plain_cores_peak(peaks, type.substr(0, type.size() - kPlainCores.size()));
}

std::vector<std::string> roofline_metrics() {
  return {"sm__ops_path_tensor_%",
          "sm__sass_thread_inst_executed_op_%",
          "smsp__sass_thread_inst_executed_op_%",
          "dram__bytes%",
          "sm__cycles_elapsed.avg%",
          "smsp__cycles_elapsed.avg%",
          "dram__cycles_elapsed.avg%"};
}

KernelRoofline kernel_roofline(const KernelCounters& given, const std::vector<hw::Peak>& peaks) {
  const KernelMetrics counters(given);
  KernelRoofline out;
  std::vector<Arithmetic> kinds = tensor_arithmetic(counters);
  if (kinds.empty()) out.missing.emplace_back("operations of tensor cores");
  for (const Arithmetic& kind : kinds) out.tensor_flops = out.tensor_flops.value_or(0) + kind.flops;
  std::vector<Arithmetic> plain = vector_arithmetic(counters);
  if (plain.empty()) out.missing.emplace_back("operations of plain cores");
  kinds.insert(kinds.end(), plain.begin(), plain.end());
  for (Arithmetic& kind : kinds) {
    take_peak(kind, peaks);
    out.flops = out.flops.value_or(0) + kind.flops;
  }
  out.dram_bytes = dram_bytes(counters);
  if (!out.dram_bytes) out.missing.emplace_back("bytes of the device's memory");
  out.peak_bytes_per_s = counters.peak("dram__bytes");
  out.peak_bytes_source = out.peak_bytes_per_s ? "ncu" : "";
  if (const auto memory = hw::bandwidth_peak(peaks); !out.peak_bytes_per_s && memory)
    out.peak_bytes_per_s = memory->per_second, out.peak_bytes_source = memory->source;
  if (!out.peak_bytes_per_s) out.missing.emplace_back("peak of the device's memory");
  if (counters.seconds() > 0) {
    if (out.flops) out.flops_per_s = *out.flops / counters.seconds();
    if (out.dram_bytes) out.bytes_per_s = *out.dram_bytes / counters.seconds();
  } else {
    out.missing.emplace_back("time");
  }
  if (out.flops && out.dram_bytes.value_or(0) > 0) out.flops_per_byte = *out.flops / *out.dram_bytes;
  const std::optional<double> compute = compute_ns(kinds, out);
  const hw::Floor floor = hw::floor_of(compute, hw::time_ns(out.dram_bytes, out.peak_bytes_per_s));
  if (out.flops && counters.seconds() > 0 && floor.bound() != "unknown") {
    out.bound = floor.bound();
    out.share_of_roof = hw::share(floor.ns, given.time_ns);
  }
  return out;
}

}  // namespace llmprof::analyze
