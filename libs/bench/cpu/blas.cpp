#include "bench/cpu/blas.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "base/dynlib.h"

namespace llmprof::bench {
namespace {

// Of the C interface to BLAS (netlib.org/blas/blast-forum): row-major, and whether an operand is transposed.
constexpr int kRowMajor = 101, kNoTranspose = 111, kTranspose = 112;

struct OpenBlasApi {
  void (*sgemm)(int, int, int, int, int, int, float, const float*, int, const float*, int, float, float*,
                int) = nullptr;
  void (*dgemm)(int, int, int, int, int, int, double, const double*, int, const double*, int, double, double*,
                int) = nullptr;
  void (*sgemv)(int, int, int, int, float, const float*, int, const float*, int, float, float*, int) = nullptr;
  void (*dgemv)(int, int, int, int, double, const double*, int, const double*, int, double, double*, int) = nullptr;
  void (*set_threads)(int) = nullptr;
  char* (*config)() = nullptr;
  char* (*core)() = nullptr;
};

constexpr base::Binding<OpenBlasApi> kSymbols[] = {
    base::bind<&OpenBlasApi::sgemm>("cblas_sgemm"),
    base::bind<&OpenBlasApi::dgemm>("cblas_dgemm"),
    base::bind<&OpenBlasApi::sgemv>("cblas_sgemv"),
    base::bind<&OpenBlasApi::dgemv>("cblas_dgemv"),
    base::bind<&OpenBlasApi::set_threads>("openblas_set_num_threads"),
    base::bind<&OpenBlasApi::config>("openblas_get_config"),
    base::bind<&OpenBlasApi::core>("openblas_get_corename"),
};

const std::string kNames[] = {"libopenblas.so.0", "libopenblas.so", "libopenblasp.so.0",
                              "/usr/lib/x86_64-linux-gnu/openblas-pthread/libopenblas.so.0",
                              "/usr/lib/aarch64-linux-gnu/openblas-pthread/libopenblas.so.0"};

// A product of few rows is as many matrix-vector products: OpenBLAS repacks the whole matrix for a matrix product.
constexpr std::int64_t kMostVectorRows = 4;

// "OpenBLAS 0.3.21 DYNAMIC_ARCH … SkylakeX MAX_THREADS=64": its name and version are the first two words.
std::string version_of(const OpenBlasApi& api) {
  const std::string config = api.config();
  const std::size_t space = config.find(' ');
  const std::size_t end = space == std::string::npos ? space : config.find(' ', space + 1);
  return fmt::format("{} ({})", config.substr(0, end), api.core());
}

// Eight sums at a time: a compiler may not reorder one.
template <class T>
T dot(const T* x, const T* y, std::int64_t count) {
  T lanes[8] = {};
  std::int64_t i = 0;
  for (; i + 8 <= count; i += 8) {
    for (int lane = 0; lane < 8; ++lane) lanes[lane] += x[i + lane] * y[i + lane];
  }
  T sum = 0;
  for (const T lane : lanes) sum += lane;
  for (; i < count; ++i) sum += x[i] * y[i];
  return sum;
}

// A block of b stays in a core's cache while all rows of a pass it.
template <class T>
void multiply_by_loop(const CpuProduct& p, const T* a, const T* b, T* c, const Team& team) {
  constexpr std::int64_t kColumns = 16;
  team.each((p.n + kColumns - 1) / kColumns, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t block = begin; block < end; ++block) {
      const std::int64_t last = std::min((block + 1) * kColumns, p.n);
      for (std::int64_t row = 0; row < p.m; ++row) {
        for (std::int64_t column = block * kColumns; column < last; ++column) {
          c[row * p.n + column] = dot(a + row * p.k, b + column * p.k, p.k);
        }
      }
    }
  });
}

}  // namespace

struct CpuBlas::State {
  OpenBlasApi api;
  std::string version;
};

CpuBlas::CpuBlas(std::unique_ptr<State> state) : state_(std::move(state)) {}
CpuBlas::~CpuBlas() = default;

bool CpuBlas::fits(std::int64_t m, std::int64_t n, std::int64_t k) {
  return std::max({m, n, k}) <= std::numeric_limits<int>::max();
}

void CpuBlas::sgemm(std::int64_t m, std::int64_t n, std::int64_t k, const float* a, const float* b, float* c) const {
  const int rows = static_cast<int>(m), columns = static_cast<int>(n), depth = static_cast<int>(k);
  if (m > kMostVectorRows) {
    state_->api.sgemm(kRowMajor, kNoTranspose, kTranspose, rows, columns, depth, 1, a, depth, b, depth, 0, c, columns);
    return;
  }
  for (std::int64_t row = 0; row < m; ++row) {
    state_->api.sgemv(kRowMajor, kNoTranspose, columns, depth, 1, b, depth, a + row * k, 1, 0, c + row * n, 1);
  }
}

void CpuBlas::dgemm(std::int64_t m, std::int64_t n, std::int64_t k, const double* a, const double* b, double* c) const {
  const int rows = static_cast<int>(m), columns = static_cast<int>(n), depth = static_cast<int>(k);
  if (m > kMostVectorRows) {
    state_->api.dgemm(kRowMajor, kNoTranspose, kTranspose, rows, columns, depth, 1, a, depth, b, depth, 0, c, columns);
    return;
  }
  for (std::int64_t row = 0; row < m; ++row) {
    state_->api.dgemv(kRowMajor, kNoTranspose, columns, depth, 1, b, depth, a + row * k, 1, 0, c + row * n, 1);
  }
}

void CpuBlas::set_threads(std::int64_t threads) const { state_->api.set_threads(static_cast<int>(threads)); }
const std::string& CpuBlas::version() const { return state_->version; }

Result<CpuBlas*> cpu_blas() {
  static const auto loaded = []() -> Result<std::shared_ptr<CpuBlas>> {
    LLMPROF_LET(const OpenBlasApi api, base::load_api<OpenBlasApi>(kNames, kSymbols));
    return std::shared_ptr<CpuBlas>(
        new CpuBlas(std::make_unique<CpuBlas::State>(CpuBlas::State{api, version_of(api)})));
  }();
  if (!loaded) return loaded.error();
  return loaded->get();
}

void multiply(const CpuProduct& p, const std::byte* a, const std::byte* b, std::byte* c, const Team& team) {
  const Result<CpuBlas*> blas = cpu_blas();
  const bool by_library = blas && CpuBlas::fits(p.m, p.n, p.k);
  if (by_library) (*blas)->set_threads(team.size());
  if (p.type == Type::kFloat64) {
    const auto *x = reinterpret_cast<const double*>(a), *y = reinterpret_cast<const double*>(b);
    auto* z = reinterpret_cast<double*>(c);
    by_library ? (*blas)->dgemm(p.m, p.n, p.k, x, y, z) : multiply_by_loop(p, x, y, z, team);
  } else {
    const auto *x = reinterpret_cast<const float*>(a), *y = reinterpret_cast<const float*>(b);
    auto* z = reinterpret_cast<float*>(c);
    by_library ? (*blas)->sgemm(p.m, p.n, p.k, x, y, z) : multiply_by_loop(p, x, y, z, team);
  }
}

std::string multiply_method(Type type) {
  const Result<CpuBlas*> blas = cpu_blas();
  if (!blas) return "loop over blocks, as no OpenBLAS was found";
  const char letter = type == Type::kFloat64 ? 'd' : 's';
  return fmt::format("{} {}gemm, {}gemv for up to {} rows", (*blas)->version(), letter, letter, kMostVectorRows);
}

}  // namespace llmprof::bench
