// Products whose size fills the device's last wave of tiles badly, and the neighbouring size that costs a wave less.

#include "analyze/rules/tools.h"

namespace llmprof::analyze::tile_waves {
namespace {

constexpr double kLeastLoss = 0.1;        // of the product's time
constexpr double kLeastGain = 0.005;      // of the stage
constexpr std::int64_t kLeastSide = 128;  // of the result: thinner ones wait for bytes, not for tiles
constexpr std::size_t kMostFindings = 3;

std::int64_t blocks_per_unit(const DeviceCard& device, const ProductKernel& product) {
  const std::optional<SmLimits> limits = sm_limits(device.chip);
  if (!limits || product.threads <= 0) return 1;
  const LaunchShape shape{.kernel = product.kernel,
                          .threads = product.threads,
                          .registers = product.registers,
                          .shared_bytes = product.shared_bytes};
  return std::max<std::int64_t>(1, occupancy_of(shape, *limits).blocks);
}

Finding finding_of(const StageView& view, const ProductKernel& product, const Tiling& tiling) {
  const std::string& stage = view.stage->name;
  const double time = product.time_ns;
  const std::optional<Neighbour> less = cheaper_neighbour(product, tiling);
  const std::string shape = shape_text(product), rows = product_rows(product);
  Finding out{.stage = stage, .part = shape};
  out.title = fmt::format("{} computes {} more than it needs: {} tiles of {} x {} in {} waves", shape,
                          human_percent(tiling.loss() / (1 - tiling.loss())), tiling.tiles, tiling.tile.m,
                          tiling.tile.n, tiling.waves());
  out.text = fmt::format("{} execute at once, so the last wave leaves {} of them idle.",
                         count_of(tiling.slots, "tiles"), human_percent(1 - tiling.last_wave()));
  if (less)
    out.text += fmt::format(" {} = {} instead of {} needs {} waves.", less->side, less->size, less->was, less->waves);
  out.lever = "a size that fills whole waves";
  out.set_gain(time * tiling.loss(), view.total_ns,
               fmt::format("{} of it, {} useful of {} computed in {} waves of {}", view.per_step(time),
                           human_count(tiling.useful), human_count(tiling.waves() * tiling.slots), tiling.waves(),
                           tiling.slots));
  out.add_fraction("tile_loss", "tiles and parts of tiles that compute nothing", tiling.loss(), "waves x tiles at once",
                   "inferred", rows);
  out.add_number("tiles", "of the result, by the kernel's name " + short_kernel(product.kernel), tiling.tiles, "",
                 "inferred");
  out.add_time("product_time", "kernels of this product", time, "measured", rows);
  out.advice = {less ? fmt::format("Choose {} = {}, if the model or the batch allows.", less->side, less->size)
                     : "Choose sizes that are multiples of the tile.",
                "Let the library choose among more kernels (cublasLt heuristics<torch>, torch.compile with "
                "max-autotune</torch>): smaller tiles, or split-K."};
  return out;
}

}  // namespace

RuleResult check(const RuleInput& run) {
  if (!run.summary.on_gpu) return not_applicable("no GPU kernels");
  if (run.summary.devices.empty() || run.summary.devices.front().units <= 0)
    return not_applicable("how many multiprocessors the device has is unknown");
  const DeviceCard& device = run.summary.devices.front();
  RuleResult out;
  std::size_t looked_at = 0;
  for (const StageView& view : steady_stages(run.summary)) {
    for (const ProductKernel& product : run.facts.products) {
      if (product.stage != view.stage->name || view.held_by_launches() || std::min(product.m, product.n) < kLeastSide)
        continue;
      const std::optional<Tiling> tiling = tiling_of(product, device.units, blocks_per_unit(device, product));
      if (!tiling) continue;
      ++looked_at;
      if (tiling->waves() < 2 || tiling->loss() < kLeastLoss ||
          static_cast<double>(product.time_ns) * tiling->loss() < kLeastGain * view.total_ns)
        continue;
      if (out.findings.size() < kMostFindings) out.findings.push_back(finding_of(view, product, *tiling));
    }
  }
  if (looked_at == 0)
    return not_applicable("no large product whose kernel names its tile, in a stage that does not wait for launches");
  out.why = fmt::format("{} of products whose kernels name their tile waste less than {} by tiles and waves",
                        count_of(looked_at, "kinds"), human_percent(kLeastLoss));
  return out;
}

}  // namespace llmprof::analyze::tile_waves
