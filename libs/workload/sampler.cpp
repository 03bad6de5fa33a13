#include "workload/sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

namespace llmprof::workload {
namespace {

// Uniform in [0, 1), from a counter: no state to carry between draws.
double uniform(std::uint64_t seed, std::int64_t sequence, std::int64_t position) {
  std::uint64_t x = seed;
  for (const std::int64_t part : {sequence, position}) {
    x += 0x9E3779B97F4A7C15ULL * (static_cast<std::uint64_t>(part) + 1);
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ULL;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBULL;
    x ^= x >> 31;
  }
  return static_cast<double>(x >> 11) * 0x1.0p-53;
}

// Damaged weights can give NaN, which must not break the order that sorting relies on.
float logit(std::span<const float> logits, Token token) {
  const float value = logits[static_cast<std::size_t>(token)];
  return std::isnan(value) ? -std::numeric_limits<float>::infinity() : value;
}

// The k likeliest tokens, likeliest first; the smaller token first among equals.
std::vector<Token> likeliest(std::span<const float> logits, std::int64_t k) {
  std::vector<Token> tokens(logits.size());
  std::iota(tokens.begin(), tokens.end(), 0);
  const auto last = tokens.begin() + std::clamp<std::ptrdiff_t>(k, 1, std::ssize(tokens));
  std::partial_sort(tokens.begin(), last, tokens.end(), [&](Token a, Token b) {
    const float logit_a = logit(logits, a);
    const float logit_b = logit(logits, b);
    return logit_a != logit_b ? logit_a > logit_b : a < b;
  });
  tokens.erase(last, tokens.end());
  return tokens;
}

}  // namespace

Token sample(const Sampler& sampler, std::span<const float> logits, std::int64_t sequence, std::int64_t position) {
  if (sampler.kind == Sampler::Kind::kGreedy) {
    return static_cast<Token>(std::max_element(logits.begin(), logits.end()) - logits.begin());
  }
  const std::vector<Token> tokens = likeliest(logits, sampler.k);
  const float largest = logit(logits, tokens.front());
  std::vector<double> cumulative;
  double sum = 0;
  for (const Token token : tokens) {
    sum += std::exp(static_cast<double>(logit(logits, token) - largest));
    cumulative.push_back(sum);
  }
  const double target = uniform(sampler.seed, sequence, position) * sum;
  const auto drawn = std::upper_bound(cumulative.begin(), cumulative.end() - 1, target) - cumulative.begin();
  return tokens[static_cast<std::size_t>(drawn)];
}

}  // namespace llmprof::workload
