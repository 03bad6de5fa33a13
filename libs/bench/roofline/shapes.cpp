#include "bench/roofline/shapes.h"

namespace llmprof::bench {
namespace {

// Cubes, long inner dimensions (few results, little written), and results whose 128 x 256 tiles fill 132
// multiprocessors a whole number of times: 12 x 11, 64 x 33.
constexpr PeakShape kHalf[] = {{2048, 2048, 13312}, {8192, 8192, 8192},  {4096, 4096, 4096},  {3072, 5632, 8192},
                               {4096, 4096, 8192},  {8192, 8448, 4096},  {1536, 2816, 16384}, {8192, 4096, 8192},
                               {6144, 5632, 8192},  {2048, 4096, 13312}, {8192, 8448, 8192},  {4096, 8192, 4096}};
constexpr PeakShape kFloat8[] = {{8192, 8192, 8192},  {1280, 4096, 12032}, {4096, 4096, 16384}, {2048, 2048, 13312},
                                 {8192, 8448, 8192},  {4096, 4096, 8192},  {3072, 5632, 16384}, {1536, 2816, 32768},
                                 {8192, 8192, 16384}, {6144, 5632, 8192},  {16384, 8192, 8192}, {4096, 8192, 8192}};
constexpr PeakShape kTf32[] = {{2048, 2048, 13312}, {4096, 4096, 4096}, {8192, 8192, 4096},
                               {3072, 5632, 4096},  {8192, 8448, 2048}, {4096, 4096, 8192}};
constexpr PeakShape kFloat32[] = {{4096, 4096, 4096}, {8192, 4096, 2048}, {2048, 2048, 8192},
                                  {8448, 4096, 2048}, {4096, 8448, 1024}, {8192, 8192, 2048}};

}  // namespace

std::span<const PeakShape> peak_shapes(Type type) {
  switch (type) {
    case Type::kFloat16:
    case Type::kBfloat16:
      return kHalf;
    case Type::kFloat8E4m3:
    case Type::kInt8:
      return kFloat8;
    case Type::kTf32:
      return kTf32;
    default:
      return kFloat32;
  }
}

}  // namespace llmprof::bench
