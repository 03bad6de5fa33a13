#include <algorithm>
#include <cmath>

#include "model/model.h"

namespace llmprof::model {
namespace {

bool known(double value) { return std::isfinite(value) && value > 0; }

bool comparable(double flops, double bytes, double peak_flops, double peak_bandwidth) {
  const bool some_work = flops >= 0 && bytes >= 0 && known(flops + bytes);
  return some_work && known(peak_flops) && known(peak_bandwidth);
}

}  // namespace

double gemm_flops(std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t batch) {
  return 2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k) * static_cast<double>(batch);
}

double gemm_bytes(std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t batch, std::int64_t element_bytes) {
  const auto rows = static_cast<double>(m), columns = static_cast<double>(n), inner = static_cast<double>(k);
  return (rows * inner + inner * columns + rows * columns) * static_cast<double>(batch) *
         static_cast<double>(element_bytes);
}

std::optional<double> efficiency(double amount, double time_ns, double peak_per_second) {
  if (!known(amount) || !known(time_ns) || !known(peak_per_second)) return std::nullopt;
  return amount / (time_ns * 1e-9) / peak_per_second;
}

std::optional<double> floor_ns(double flops, double bytes, double peak_flops, double peak_bandwidth) {
  if (!comparable(flops, bytes, peak_flops, peak_bandwidth)) return std::nullopt;
  return std::max(flops / peak_flops, bytes / peak_bandwidth) * 1e9;
}

std::string_view bound_by(double flops, double bytes, double peak_flops, double peak_bandwidth) {
  if (!comparable(flops, bytes, peak_flops, peak_bandwidth)) return "unknown";
  return flops / peak_flops > bytes / peak_bandwidth ? "compute" : "memory";
}

}  // namespace llmprof::model
