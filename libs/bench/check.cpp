#include "bench/check.h"

#include <cmath>
#include <limits>
#include <numbers>
#include <numeric>

namespace llmprof::bench {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
// All bits set: not a number in every floating-point type, -1 as an integer. An output that still holds it was not
// written.
constexpr std::byte kPoison{0xff};

// SplitMix64: every seed gives an independent sequence, also neighbouring ones.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15u + 0x1234567u) {}

  std::uint64_t bits() {
    std::uint64_t z = state_ += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  double uniform() { return static_cast<double>(bits() >> 11) * 0x1p-53; }
  double normal() {  // Box and Muller; 1 - u is never 0
    return std::sqrt(-2 * std::log(1 - uniform())) * std::cos(2 * std::numbers::pi * uniform());
  }
  double below(std::int64_t limit) { return std::floor(uniform() * static_cast<double>(limit)); }

 private:
  std::uint64_t state_;
};

std::vector<double> permutation(std::size_t count, Random& random) {
  std::vector<double> values(count);
  std::iota(values.begin(), values.end(), 0.0);
  for (std::size_t i = count; i > 1; --i) {
    std::swap(values[i - 1], values[static_cast<std::size_t>(random.below(static_cast<std::int64_t>(i)))]);
  }
  return values;
}

double drawn(const Fill& fill, Random& random) {
  switch (fill.kind) {
    case Fill::Kind::kNormal:
      return fill.scale * random.normal();
    case Fill::Kind::kUniform:
      return fill.scale * random.uniform();
    case Fill::Kind::kIndices:
      return random.below(fill.limit);
    case Fill::Kind::kPermutation:
    case Fill::Kind::kZero:
      return 0;
  }
  return 0;
}

struct Prepared {
  std::vector<TensorSpec> specs;
  std::vector<std::vector<double>> values;     // inputs, then through the reference
  std::vector<std::vector<std::byte>> memory;  // what the implementation gets
};

Prepared prepare_tensors(const Operator& op, const Problem& problem, std::uint64_t seed) {
  Prepared prepared{op.tensors(problem), {}, {}};
  for (std::size_t i = 0; i < prepared.specs.size(); ++i) {
    const TensorSpec& spec = prepared.specs[i];
    auto& memory = prepared.memory.emplace_back(static_cast<std::size_t>(spec.bytes()), kPoison);
    if (spec.role == Role::kOut) {
      prepared.values.emplace_back(static_cast<std::size_t>(spec.elements));
      continue;
    }
    prepared.values.push_back(random_values(spec, seed * 131 + i));
    encode(prepared.values.back(), spec.type, memory.data());
  }
  return prepared;
}

// After the implementation ran: the worst error of all outputs.
double compare_with_reference(const Operator& op, const Problem& problem, Prepared& prepared) {
  op.reference(problem, prepared.values);
  double worst = 0;
  for (std::size_t i = 0; i < prepared.specs.size(); ++i) {
    if (prepared.specs[i].role == Role::kIn) continue;
    std::vector<double> result(prepared.values[i].size());
    decode(prepared.memory[i].data(), prepared.specs[i].type, result);
    worst = std::max(worst, relative_error(result, prepared.values[i]));
  }
  return worst;
}

}  // namespace

std::vector<double> random_values(const TensorSpec& spec, std::uint64_t seed) {
  Random random(seed);
  const auto count = static_cast<std::size_t>(spec.elements);
  if (spec.fill.kind == Fill::Kind::kPermutation) return permutation(count, random);
  std::vector<double> values(count);
  for (double& value : values) value = rounded(drawn(spec.fill, random), spec.type);
  return values;
}

double relative_error(std::span<const double> result, std::span<const double> reference) {
  if (result.size() != reference.size()) return kInfinity;
  double difference = 0, norm = 0;
  for (std::size_t i = 0; i < result.size(); ++i) {
    if (!std::isfinite(reference[i])) {  // where it is infinite or not a number, the result must be so, too
      const bool same = result[i] == reference[i] || (std::isnan(result[i]) && std::isnan(reference[i]));
      if (!same) return kInfinity;
      continue;
    }
    if (!std::isfinite(result[i])) return kInfinity;
    difference += (result[i] - reference[i]) * (result[i] - reference[i]);
    norm += reference[i] * reference[i];
  }
  if (difference == 0) return 0;
  return std::sqrt(difference / norm);  // infinite where the reference is all zero
}

double check_on_cpu(const Operator& op, const Problem& problem, const Team& team, std::uint64_t seed) {
  Prepared prepared = prepare_tensors(op, problem, seed);
  std::vector<std::byte*> pointers;
  for (auto& memory : prepared.memory) pointers.push_back(memory.data());
  op.cpu(problem, pointers, team);
  return compare_with_reference(op, problem, prepared);
}

Result<double> check_on_gpu(const Operator& op, const Problem& problem, cuda::Context& context, const CudaCall& call,
                            std::uint64_t seed) {
  Prepared prepared = prepare_tensors(op, problem, seed);
  std::vector<cuda::Buffer> buffers;
  std::vector<cuda::Pointer> pointers;
  for (const auto& memory : prepared.memory) {
    const auto bytes = static_cast<std::int64_t>(memory.size());
    LLMPROF_LET(cuda::Buffer buffer, context.allocate(std::max<std::int64_t>(bytes, 1)));
    if (bytes > 0) LLMPROF_TRY(context.copy_in(buffer.pointer(), memory.data(), bytes));
    pointers.push_back(buffer.pointer());
    buffers.push_back(std::move(buffer));
  }
  LLMPROF_TRY(call.enqueue(pointers, context.stream()));
  LLMPROF_TRY(context.synchronize());
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    const auto bytes = static_cast<std::int64_t>(prepared.memory[i].size());
    if (bytes > 0) LLMPROF_TRY(context.copy_out(prepared.memory[i].data(), pointers[i], bytes));
  }
  return compare_with_reference(op, problem, prepared);
}

}  // namespace llmprof::bench
