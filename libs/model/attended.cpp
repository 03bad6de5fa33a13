// What causal attention sees: all that came before, a window of it, or the query's own chunk.

#include <algorithm>
#include <cmath>

#include "model/cost.h"

namespace llmprof::model {
namespace {

// 1 + 2 + … + n
double triangle(double n) { return n * (n + 1) / 2; }

// Sum over the first p queries of ((q - 1) mod s) + 1: whole chunks, and the begun one.
double chunk_pairs(double p, double s) {
  const double whole = std::floor(p / s);
  return whole * triangle(s) + triangle(p - whole * s);
}

}  // namespace

double attended_pairs(const Attention& attention, double n, double c) {
  if (attention.chunk > 0) {
    const auto chunk = static_cast<double>(attention.chunk);
    return chunk_pairs(c, chunk) - chunk_pairs(c - n, chunk);
  }
  if (!attention.causal) return n * c;
  const double all = n * c - n * (n - 1) / 2;  // query i of n (i = 1…n) sees c - n + i keys, itself included
  if (attention.window == 0) return all;
  const auto window = static_cast<double>(attention.window);
  // The last queries see more than the window: each of them loses what is beyond it.
  const double beyond = std::max(0.0, c - window), before = std::max(0.0, c - n - window);
  return all - (triangle(beyond) - triangle(before));
}

double attended_keys(const Attention& attention, double n, double c) {
  if (attention.chunk > 0) {
    const auto chunk = static_cast<double>(attention.chunk);
    return c - std::floor((c - n) / chunk) * chunk;
  }
  if (attention.window == 0) return c;
  return std::min(c, static_cast<double>(attention.window) + n - 1);
}

}  // namespace llmprof::model
