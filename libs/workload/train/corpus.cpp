#include "workload/train/corpus.h"

#include "base/assert.h"
#include "base/asset.h"

namespace llmprof::workload {

std::span<const base::Asset> assets();  // made by llmprof_embed_assets

namespace {

// A number without pattern for each argument (the finaliser of SplitMix64).
std::uint64_t scatter(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ULL;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBULL;
  return x ^ (x >> 31);
}

}  // namespace

std::string_view corpus() { return base::find_asset(assets(), "train/corpus.txt"); }

TrainingBatch training_batch(std::string_view text, std::int64_t batch, std::int64_t tokens, std::uint64_t seed,
                             std::int64_t step) {
  LLMPROF_ASSERT(std::ssize(text) > tokens);
  const auto places = static_cast<std::uint64_t>(std::ssize(text) - tokens);
  TrainingBatch out;
  for (std::int64_t sequence = 0; sequence < batch; ++sequence) {
    const auto draw = static_cast<std::uint64_t>(step * batch + sequence + 1);
    const std::size_t begin = scatter(seed + 0x9E3779B97F4A7C15ULL * draw) % places;
    for (std::size_t t = begin; t < begin + static_cast<std::size_t>(tokens); ++t) {
      out.inputs.push_back(static_cast<unsigned char>(text[t]));
      out.targets.push_back(static_cast<unsigned char>(text[t + 1]));
    }
  }
  return out;
}

}  // namespace llmprof::workload
