#pragma once
// Decodes of unequal contexts in one attention: t = t(mean) + alpha (t(largest) - t(mean)), alpha fitted per bucket by
// whoever measured the table.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "base/result.h"

namespace llmprof::predict {

struct Decodes {
  std::int64_t count = 0;
  double mean = 0, least = 0, most = 0;  // of their contexts
};

// `skew_rate` is (mean - least) / (largest - least) of the decodes' contexts, kv_big the largest: so the profiler of
// LLMServingSim 2 defines them, which measured batches of two different contexts. On the one run that it could be tried
// on (vllm_0.19_rtx4090) this correction made predictions worse by 2.3 %, nearly all of it in steps without prompts,
// where its meaning is not in doubt: it is off unless asked for.
class SkewFit {
 public:
  // The labels as they stand in the file: 16, "n<=128", "sr<=15%", "sr>70%", "kvB<=4k", "kp=0", "kp<=512".
  Result<void> add(double chunk, const std::vector<std::string_view>& labels, double alpha, double samples);
  bool empty() const { return buckets_.empty(); }
  std::int64_t size() const { return static_cast<std::int64_t>(buckets_.size()); }
  // nullopt: there is no such bucket.
  std::optional<double> alpha(double chunk, double chunk_context, const Decodes& decodes) const;

 private:
  // Chunk, and the upper bounds of decodes, share, largest context, and context of the chunk.
  using Key = std::tuple<double, double, double, double, double>;
  std::map<Key, double> buckets_;
  std::vector<double> bounds_[5];
};

}  // namespace llmprof::predict
