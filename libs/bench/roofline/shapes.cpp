#include "bench/roofline/shapes.h"

namespace llmprof::bench {
namespace {

// As they were found on an H200 (132 multiprocessors), sustained for 0.1 s on random data, the fastest first: long
// inner dimensions (little is written), and results whose tiles of 128 x 256 or 256 x 128 fill all multiprocessors a
// whole number of times (1536 x 2816 are 132 of them). Cubes are what others quote.
constexpr PeakShape kHalf[] = {{2048, 2048, 13312}, {768, 5632, 16384}, {3072, 5632, 8192}, {8192, 8192, 8192},
                               {1536, 2816, 16384}, {3072, 2816, 8192}, {8192, 8448, 4096}, {4224, 2048, 8192},
                               {4096, 4096, 8192},  {4096, 4096, 4096}};
constexpr PeakShape kFloat8[] = {{1536, 2816, 32768}, {4224, 2048, 16384}, {4096, 4096, 16384},
                                 {1280, 4096, 12032}, {1536, 2816, 16384}, {3072, 5632, 16384},
                                 {8192, 4096, 8192},  {8192, 8192, 8192},  {2048, 2048, 13312}};
constexpr PeakShape kInt8[] = {{1536, 2816, 16384}, {2048, 2048, 13312}, {4096, 4096, 16384}, {3072, 2816, 8192},
                               {4224, 4096, 8192},  {4096, 4096, 8192},  {4096, 4096, 4096},  {8192, 8192, 8192}};
constexpr PeakShape kTf32[] = {{2048, 2048, 13312}, {1536, 2816, 8192}, {3072, 5632, 4096},
                               {4096, 4096, 4096},  {8192, 8192, 4096}, {4224, 4096, 4096}};
constexpr PeakShape kFloat32[] = {{4096, 4096, 4096}, {8192, 4096, 2048}, {4224, 4096, 2048},
                                  {2048, 2048, 8192}, {8448, 4096, 1024}, {8192, 8192, 2048}};
constexpr PeakShape kFloat64[] = {{4096, 4096, 4096}, {2112, 2048, 4096}, {2048, 2048, 4096},
                                  {8192, 4096, 2048}, {4224, 4096, 2048}, {8192, 8192, 2048}};

}  // namespace

std::span<const PeakShape> peak_shapes(Type type) {
  switch (type) {
    case Type::kFloat16:
    case Type::kBfloat16:
      return kHalf;
    case Type::kFloat8E4m3:
      return kFloat8;
    case Type::kInt8:
      return kInt8;
    case Type::kTf32:
      return kTf32;
    case Type::kFloat64:
      return kFloat64;
    default:
      return kFloat32;
  }
}

}  // namespace llmprof::bench
