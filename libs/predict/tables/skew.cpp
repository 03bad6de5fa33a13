#include "predict/tables/skew.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/errors.h"
#include "base/numbers.h"

namespace llmprof::predict {
namespace {

constexpr double kOpen = std::numeric_limits<double>::infinity();

// The upper bound of "n<=128", "sr<=15%" (0.15), "kvB<=4k" (4096), "kp=0" (0); "sr>70%" has none.
std::optional<double> upper_bound(std::string_view label) {
  const std::size_t sign = label.find_first_of("<>=");
  if (sign == std::string_view::npos || sign == 0) return std::nullopt;
  std::string_view text = label.substr(sign);
  const bool open = text.starts_with(">");
  text.remove_prefix(text.starts_with("<=") ? 2 : 1);
  std::string_view unit;
  const auto value = base::leading_number<double>(text, unit);
  if (!value || !std::isfinite(*value) || *value < 0) return std::nullopt;
  if (!unit.empty() && unit != "k" && unit != "%") return std::nullopt;
  if (open) return kOpen;
  return *value * (unit == "k" ? 1024 : unit == "%" ? 0.01 : 1);
}

// The smallest bound that holds the value; the largest one for what is beyond all.
double bucket(const std::vector<double>& bounds, double value) {
  const auto found = std::ranges::lower_bound(bounds, value);
  return found == bounds.end() ? bounds.back() : *found;
}

}  // namespace

Result<void> SkewFit::add(double chunk, const std::vector<std::string_view>& labels, double alpha, double samples) {
  if (!std::isfinite(alpha) || std::fabs(alpha) > 100) return corrupt_error("alpha {} cannot be one", alpha);
  if (!(chunk >= 0) || !std::isfinite(chunk)) return corrupt_error("a chunk of {} cannot be one", chunk);
  if (samples < 1) return {};  // a bucket nothing was fitted in
  double at[5] = {chunk};
  for (std::size_t i = 0; i < 4; ++i) {
    const auto bound = i < labels.size() ? upper_bound(labels[i]) : std::nullopt;
    if (!bound) return corrupt_error("\"{}\" is not a bucket like n<=16", i < labels.size() ? labels[i] : "");
    at[i + 1] = *bound;
  }
  buckets_[{at[0], at[1], at[2], at[3], at[4]}] = alpha;
  for (std::size_t i = 0; i < 5; ++i) {
    const auto place = std::ranges::lower_bound(bounds_[i], at[i]);
    if (place == bounds_[i].end() || *place != at[i]) bounds_[i].insert(place, at[i]);
  }
  return {};
}

std::optional<double> SkewFit::alpha(double chunk, double chunk_context, const Decodes& decodes) const {
  if (buckets_.empty() || decodes.count < 2 || decodes.most <= decodes.least) return std::nullopt;
  const double share = (decodes.mean - decodes.least) / (decodes.most - decodes.least);
  const Key key{bucket(bounds_[0], chunk), bucket(bounds_[1], static_cast<double>(decodes.count)),
                bucket(bounds_[2], share), bucket(bounds_[3], decodes.most), bucket(bounds_[4], chunk_context)};
  const auto found = buckets_.find(key);
  if (found == buckets_.end()) return std::nullopt;
  return found->second;
}

}  // namespace llmprof::predict
