// Matrix products that the tensor cores could do, and do not.

#include "analyze/model/efficiency.h"
#include "analyze/rules/tools.h"
#include "hw/roof.h"

namespace llmprof::analyze::idle_tensor_cores {
namespace {

constexpr double kLeastGain = 0.02;  // of the stage

double value_bytes(std::string_view type) { return static_cast<double>(element_bytes(type).value_or(2)); }

double floor_ns(const RuleInput& run, const ProductKernel& product, double peak) {
  const hw::Floor floor =
      hw::floor_of(hw::time_ns(product.flops(), peak), hw::time_ns(product.bytes(), run.summary.peak_bandwidth));
  return floor.ns.value_or(floor.compute_ns.value_or(0));
}

bool aligned(const ProductKernel& product) {
  const std::int64_t unit = value_bytes(product.type) == 1 ? 16 : 8;
  return product.k % unit == 0 && product.m % unit == 0 && (product.n % unit == 0 || product.n < unit);
}

// A vector, or a few rows: their time is the weights' bytes.
bool is_skinny(const ProductKernel& product) { return std::min({product.m, product.n, product.k}) < 8; }

struct Sum {
  double time_ns = 0, saved_ns = 0;
  const ProductKernel* largest = nullptr;
  std::int64_t shapes = 0;

  void add(const ProductKernel& product, double saved) {
    time_ns += product.time_ns;
    saved_ns += saved;
    ++shapes;
    if (largest == nullptr || product.time_ns > largest->time_ns) largest = &product;
  }
};

Finding plain_float(const StageView& view, const Sum& sum, double plain, double tensor) {
  const ProductKernel& most = *sum.largest;
  const std::string& stage = view.stage->name;
  const double of_peak = most.flops() / most.time_ns * 1e9 / plain;
  Finding out{.stage = stage, .part = shape_text(most)};
  out.title = fmt::format("{} multiplies float32 without tensor cores, {} of its kernels' time", stage,
                          human_percent(sum.time_ns / view.busy_ns()));
  out.text = fmt::format("Plain cores do {}, tensor cores {} with TF32. The largest product, {}, runs on {}.",
                         human_rate(plain, "FLOP/s"), human_rate(tensor, "FLOP/s"), shape_text(most),
                         short_kernel(most.kernel));
  out.lever = "tensor cores (TF32 or bfloat16)";
  if (view.held_by_launches())
    out.text += hidden_by_launches(view);
  else
    out.set_gain(sum.saved_ns, view.total_ns,
                 fmt::format("{} in these products; with TF32 and the same share of their floor {}",
                             view.per_step(sum.time_ns), view.per_step(sum.time_ns - sum.saved_ns)));
  out.add_time("plain_products", "kernels of float32 products on plain cores", sum.time_ns, "measured",
               product_rows(most));
  out.add_fraction("largest_of_peak", "FLOP/s of " + shape_text(most), of_peak,
                   human_rate(plain, "FLOP/s") + " float32 on plain cores", "measured", product_rows(most));
  out.advice = {
      "Run the model in bfloat16<torch> (autocast, or torch_dtype=torch.bfloat16)</torch>: half the bytes as well.",
      "Or allow TF32<torch> (torch.set_float32_matmul_precision(\"high\"))</torch>: 10 bits of mantissa, operands stay "
      "float32."};
  out.next = "llmprof diff RUN RUN_WITH_TF32";
  return out;
}

Finding misaligned(const StageView& view, const Sum& sum, double reference) {
  const ProductKernel& most = *sum.largest;
  const std::string& stage = view.stage->name;
  Finding out{.stage = stage, .part = shape_text(most)};
  out.title = fmt::format("Sizes of {}'s products keep tensor cores idle: {}", stage, shape_text(most));
  out.text =
      fmt::format("{} of {} with a side that is no multiple of {}; {} runs on {}.", count_of(sum.shapes, "shapes"),
                  stage, value_bytes(most.type) == 1 ? 16 : 8, shape_text(most), short_kernel(most.kernel));
  out.lever = "sizes that are multiples of 8";
  if (!view.held_by_launches())
    out.set_gain(
        sum.saved_ns, view.total_ns,
        fmt::format("{} in them; at {} of the peak, as the stage's aligned products, {}", view.per_step(sum.time_ns),
                    human_percent(reference), view.per_step(sum.time_ns - sum.saved_ns)));
  out.add_time("misaligned_products", "kernels of these products", sum.time_ns, "measured", product_rows(most));
  out.add_fraction("aligned_of_peak", "what aligned products of the stage reach", reference, "peak of their type",
                   "measured");
  out.advice = {
      "Pad the sizes (vocabulary, hidden sizes, batch x tokens) to multiples of 8 values of 16 bits, 16 of 8 bits; 64 "
      "is better."};
  return out;
}

// Best share of the peak that large aligned products of the stage reach.
double reference_share(const RuleInput& run, const StageView& view) {
  double best = 0;
  for (const ProductKernel& product : run.facts.products) {
    const double peak = run.facts.peak(product.type);
    if (product.stage != view.stage->name || peak <= 0 || !aligned(product) || is_skinny(product)) continue;
    best = std::max(best, product.flops() / std::max<std::int64_t>(1, product.time_ns) * 1e9 / peak);
  }
  return std::min(best, 1.0);
}

void check_stage(const RuleInput& run, const StageView& view, std::vector<Finding>& findings) {
  Sum plain, odd;
  const double plain_peak = run.facts.peak("float32"), tf32 = run.facts.peak("tf32");
  const double reference = reference_share(run, view);
  for (const ProductKernel& product : run.facts.products) {
    if (product.stage != view.stage->name || product.time_ns <= 0 || is_skinny(product)) continue;
    const double time = product.time_ns;
    if (product.type == "float32" && product.compute_type != "tf32" && !base::contains(product.compute_type, "bf") &&
        tf32 > 0 && plain_peak > 0) {
      const double now = floor_ns(run, product, plain_peak), then = floor_ns(run, product, tf32);
      plain.add(product, time * (1 - std::min(1.0, then / now)));
    } else if (value_bytes(product.type) <= 2 && !aligned(product) && reference > 0) {
      const double peak = run.facts.peak(product.type);
      if (peak <= 0) continue;
      const double then = floor_ns(run, product, peak) / reference;
      if (then < 0.8 * time) odd.add(product, time - then);
    }
  }
  if (plain.saved_ns >= kLeastGain * view.total_ns ||
      (plain.saved_ns > 0 && view.held_by_launches() && plain.time_ns > 0.2 * view.busy_ns()))
    findings.push_back(plain_float(view, plain, plain_peak, tf32));
  if (odd.saved_ns >= kLeastGain * view.total_ns) findings.push_back(misaligned(view, odd, reference));
}

}  // namespace

RuleResult check(const RuleInput& run) {
  if (!run.summary.on_gpu) return not_applicable("no GPU kernels");
  if (run.facts.products.empty()) return not_applicable("no matrix products with their kernels were recorded");
  RuleResult out{.why = "products are in types and sizes that tensor cores take, or too thin for them"};
  for (const StageView& view : steady_stages(run.summary)) check_stage(run, view, out.findings);
  return out;
}

}  // namespace llmprof::analyze::idle_tensor_cores
