// Random data in the device's memory: made there by fill.cu, but for permutations, which are made here.

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "bench/cuda/sampler.h"

namespace llmprof::bench::cuda {
namespace {

constexpr std::int64_t kMostPermuted = std::int64_t{1} << 27;
constexpr std::int64_t kPackBytes = 16, kBlockThreads = 256, kBlocksPerMultiprocessor = 32;

std::uint64_t mixed(std::uint64_t z) {  // the finaliser of splitmix64, as in fill.cu
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  return z ^ (z >> 31);
}

std::uint64_t key_of(std::uint64_t seed) { return mixed(seed + 0x9e3779b97f4a7c15ull); }

Result<void> fill_permutation(Context& context, Pointer to, const TensorSpec& spec, std::uint64_t key) {
  if (spec.elements > kMostPermuted) {
    return Error{ErrorCode::kUnsupported,
                 fmt::format("{}: a permutation of {} values is more than fits here", spec.name, spec.elements), ""};
  }
  std::vector<double> values(static_cast<std::size_t>(spec.elements));
  std::iota(values.begin(), values.end(), 0.0);
  for (std::size_t left = values.size(); left > 1; --left) {
    key += 0x9e3779b97f4a7c15ull;
    std::swap(values[left - 1], values[mixed(key) % left]);  // the bias of % is below 2^-36 here
  }
  std::vector<std::byte> bytes(static_cast<std::size_t>(spec.bytes()));
  encode(values, spec.type, bytes.data());
  return context.copy_in(to, bytes.data(), spec.bytes());
}

}  // namespace

Result<void> fill_random(Context& context, Pointer to, const TensorSpec& spec, std::uint64_t seed) {
  if (spec.elements <= 0) return {};
  const std::uint64_t key = key_of(seed);
  if (spec.fill.kind == Fill::Kind::kZero) return context.set_bytes(to, 0, spec.bytes());
  if (spec.fill.kind == Fill::Kind::kPermutation) return fill_permutation(context, to, spec, key);
  const int kind = static_cast<int>(spec.fill.kind);
  const auto limit = static_cast<std::uint64_t>(std::max<std::int64_t>(spec.fill.limit, 1));
  const Type stored = spec.type == Type::kTf32 ? Type::kFloat32 : spec.type;
  const std::int64_t packs = (spec.bytes() + kPackBytes - 1) / kPackBytes;
  const std::int64_t blocks =
      std::min((packs + kBlockThreads - 1) / kBlockThreads,
               kBlocksPerMultiprocessor * std::max<std::int64_t>(context.properties().multiprocessors, 1));
  return context.launch("llmprof_fill_" + std::string(type_name(stored)), {.grid_x = blocks, .block_x = kBlockThreads},
                        {to, spec.elements, kind, spec.fill.scale, limit, key});
}

}  // namespace llmprof::bench::cuda
