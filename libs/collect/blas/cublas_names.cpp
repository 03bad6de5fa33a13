#include "collect/blas/cublas_call.h"

#include <string.h>

#include <atomic>

namespace llmprof::collect::blas {
namespace {

constexpr const char* kTypeNames[kCudaTypes] = {"float32",     "float64",        "float16",         "int8",
                                                "complex64",   "complex128",     "complex_float16", "complex_int8",
                                                "uint8",       "complex_uint8",  "int32",           "complex_int32",
                                                "uint32",      "complex_uint32", "bfloat16",        "complex_bfloat16",
                                                "int4",        "complex_int4",   "uint4",           "complex_uint4",
                                                "int16",       "complex_int16",  "uint16",          "complex_uint16",
                                                "int64",       "complex_int64",  "uint64",          "complex_uint64",
                                                "float8_e4m3", "float8_e5m2",    "float8_e8m0",     "float6_e2m3",
                                                "float6_e3m2", "float4_e2m1"};

// By number - kFirstCompute. Pedantic ones keep the type's name: they compute in it, with fewer liberties.
constexpr const char* kComputeNames[kLastCompute - kFirstCompute + 1] = {"float16",
                                                                         "float16",
                                                                         nullptr,
                                                                         nullptr,
                                                                         "float32",
                                                                         "float32",
                                                                         "float64",
                                                                         "float64",
                                                                         "int32",
                                                                         "int32",
                                                                         "float32_fast_float16",
                                                                         "float32_fast_bfloat16",
                                                                         nullptr,
                                                                         "tf32",
                                                                         "float32_emulated_bfloat16x9",
                                                                         "float64_emulated_fixed_point"};

constexpr const char* kScaleNames[] = {"tensor",        "vec16_ue4m3", "vec32_ue8m0",
                                       "outer_vec_32f", "vec128_32f",  "blk128x128_32f"};
constexpr std::int32_t kScales = sizeof(kScaleNames) / sizeof(kScaleNames[0]);

struct Epilogue {
  std::int32_t number;
  const char* name;
};
constexpr Epilogue kEpilogues[] = {{2, "relu"},
                                   {2 | 128, "relu_aux"},
                                   {4, "bias"},
                                   {2 | 4, "relu_bias"},
                                   {2 | 4 | 128, "relu_aux_bias"},
                                   {8 | 128, "drelu"},
                                   {8 | 16 | 128, "drelu_bgrad"},
                                   {32, "gelu"},
                                   {32 | 128, "gelu_aux"},
                                   {32 | 4, "gelu_bias"},
                                   {32 | 4 | 128, "gelu_aux_bias"},
                                   {64 | 128, "dgelu"},
                                   {64 | 16 | 128, "dgelu_bgrad"},
                                   {256, "bgrada"},
                                   {512, "bgradb"}};
constexpr std::int32_t kEpilogueCount = sizeof(kEpilogues) / sizeof(kEpilogues[0]);

struct Pair {
  std::uint16_t first, second;
};
constexpr Pair kTiles[] = {
    {0, 0},
#define TILE(m, n) {m, n},
#include "collect/blas/cublas_numbers.def"
};
constexpr std::int32_t kTileCount = sizeof(kTiles) / sizeof(kTiles[0]);

constexpr std::int32_t kMostStages = 63, kMostClusters = 63;
struct Named {
  Pair stages[kMostStages + 1] = {}, clusters[kMostClusters + 1] = {};
};
constexpr std::uint16_t AUTO = 0;
constexpr Named make_named() {
  Named result;
#define STAGES(k, count, number) result.stages[number] = {k, count};
#define CLUSTER(x, y, number) result.clusters[number] = {x, y};
#include "collect/blas/cublas_numbers.def"
  return result;
}
constexpr Named kNamed = make_named();

using Cache = std::atomic<wire::StringId>;
constinit Cache type_ids[kCudaTypes]{}, compute_ids[kLastCompute - kFirstCompute + 1]{}, epilogue_ids[kEpilogueCount]{};
constinit Cache scaling_ids[kScales + 1][kScales + 1]{};

wire::StringId cached(const llmprof_collector_table* table, Cache& cache, const char* name) {
  wire::StringId id = cache.load(std::memory_order_relaxed);
  if (id != 0 || name == nullptr) return id;
  id = table->intern(name);
  cache.store(id, std::memory_order_relaxed);
  return id;
}

// A short text put together without the C library's formatting, which may allocate.
class Text {
 public:
  void add(const char* part) {
    while (*part != '\0' && used_ + 1 < sizeof(text_)) text_[used_++] = *part++;
  }
  void add(std::int32_t number) {
    char digits[12];
    std::size_t at = sizeof(digits) - 1;
    digits[at] = '\0';
    auto rest = static_cast<std::uint32_t>(number < 0 ? 0 : number);
    do digits[--at] = static_cast<char>('0' + rest % 10);
    while ((rest /= 10) != 0);
    add(digits + at);
  }
  const char* text() const { return text_; }

 private:
  char text_[128] = {};
  std::size_t used_ = 0;
};

// "tile 128x256"; a number without a name: "tile #700".
void add_pair(Text* text, const char* what, std::int32_t number, const Pair* names, std::int32_t count) {
  if (number <= 0) return;
  text->add(what);
  const Pair pair = number < count ? names[number] : Pair{0, 0};
  if (pair.first == 0) {
    text->add("#");
    return text->add(number);
  }
  text->add(pair.first);
  text->add("x");
  pair.second == AUTO ? text->add("auto") : text->add(pair.second);
}

}  // namespace

wire::StringId type_id(const llmprof_collector_table* table, std::int32_t type) {
  return type >= 0 && type < kCudaTypes ? cached(table, type_ids[type], kTypeNames[type]) : 0;
}

wire::StringId compute_id(const llmprof_collector_table* table, std::int32_t compute) {
  if (compute < kFirstCompute) return type_id(table, compute);
  const std::int32_t index = compute - kFirstCompute;
  return compute <= kLastCompute ? cached(table, compute_ids[index], kComputeNames[index]) : 0;
}

wire::StringId epilogue_id(const llmprof_collector_table* table, std::int32_t epilogue) {
  for (std::int32_t i = 0; epilogue > 1 && i < kEpilogueCount; ++i) {
    if (kEpilogues[i].number == epilogue) return cached(table, epilogue_ids[i], kEpilogues[i].name);
  }
  return 0;
}

wire::StringId scaling_id(const llmprof_collector_table* table, std::int32_t a, std::int32_t b) {
  if ((a < 0 && b < 0) || a >= kScales || b >= kScales) return 0;
  Cache& cache = scaling_ids[a + 1][b + 1];
  if (const wire::StringId id = cache.load(std::memory_order_relaxed)) return id;
  Text text;
  text.add(a < 0 ? "none" : kScaleNames[a]);
  if (a != b) {
    text.add(" x ");
    text.add(b < 0 ? "none" : kScaleNames[b]);
  }
  return cached(table, cache, text.text());
}

wire::StringId algorithm_id(const llmprof_collector_table* table, const Algorithm& algorithm) {
  if (algorithm.number < 0) return 0;
  Text text;
  text.add("algo ");
  text.add(algorithm.number);
  add_pair(&text, " tile ", algorithm.tile, kTiles, kTileCount);
  add_pair(&text, " stages ", algorithm.stages, kNamed.stages, kMostStages + 1);
  if (algorithm.split_k >= 0) {
    text.add(" splitk ");
    text.add(algorithm.split_k);
  }
  add_pair(&text, " cluster ", algorithm.cluster, kNamed.clusters, kMostClusters + 1);
  return table->intern(text.text());
}

}  // namespace llmprof::collect::blas
