#include "bench/cuda/blas.h"

#include <fmt/format.h>

#include <array>

#include "base/cuda_libraries.h"
#include "base/dynlib.h"
#include "base/errors.h"
#include "bench/cuda/blas_library.h"

namespace llmprof::bench::cuda {

namespace {

// What PyTorch gives cuBLAS on Hopper: the heuristic's first answer is then the one it takes.
constexpr std::int64_t kWorkspaceBytes = std::int64_t{32} << 20;

// The version this was built with first. The functions above are the same in 12 and 13.
std::vector<std::string> library_names(const char* stem) {
  std::vector<std::string> names;
  for (const int major : {CUBLAS_VER_MAJOR, 13, 12}) {
    const std::string name = fmt::format("{}.so.{}", stem, major);
    names.push_back(name);
    for (std::string& path : base::cuda_library_candidates(name)) names.push_back(std::move(path));
  }
  return names;
}

// 130100 is 13.1.0.
std::string version_text(std::size_t version) {
  return fmt::format("cuBLASLt {}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

// Without cuBLAS itself there is still cuBLASLt.
void open_cublas(BlasState& state) {
  const auto api = base::load_api<CublasApi>(library_names("libcublas"), CublasApi::symbols());
  if (!api || api->create(&state.handle) != CUBLAS_STATUS_SUCCESS) return;
  state.cublas = *api;
  auto* const stream = reinterpret_cast<cudaStream_t>(state.context.stream());
  const auto bytes = static_cast<std::size_t>(state.workspace.bytes());
  // The order matters: a new stream takes the workspace away.
  if (api->set_stream(state.handle, stream) != CUBLAS_STATUS_SUCCESS ||
      api->set_workspace(state.handle, reinterpret_cast<void*>(state.workspace.pointer()), bytes) !=
          CUBLAS_STATUS_SUCCESS) {
    api->destroy(state.handle);
    state.handle = nullptr;
  }
}

Error unsupported(const Matmul& m, const std::string& why) {
  return unsupported_error("{} product of m={} n={} k={}: {}", type_name(m.type), m.m, m.n, m.k, why);
}

// What is known before the library is asked, in words better than its own.
Result<void> check_supported(const Matmul& m, const Properties& device) {
  const bool one_byte = type_bytes(m.type) == 1;
  if (one_byte && (m.n % 16 != 0 || m.k % 16 != 0)) return unsupported(m, "n and k must be multiples of 16");
  const int least = m.type == Type::kFloat8E4m3 ? 89 : m.type == Type::kBfloat16 || m.type == Type::kTf32 ? 80 : 0;
  if (device.capability() < least) {
    return unsupported(m, fmt::format("needs compute capability {}.{}, {} has {}.{}", least / 10, least % 10,
                                      device.name, device.major, device.minor));
  }
  return {};
}

// Groups of rows in one call of cublasGemmGroupedBatchedEx. It wants the sizes in host memory and the addresses in the
// device's.

class GroupedPlan {
 public:
  GroupedPlan(BlasState& blas, const GroupedMatmul& matmul)
      : blas_(blas),
        types_(blas_types(matmul.type)),
        operand_bytes_(type_bytes(matmul.type)),
        result_bytes_(type_bytes(product_type(matmul.type))) {
    std::int64_t row = 0;
    for (std::size_t group = 0; group < matmul.rows.size(); ++group) {
      if (matmul.rows[group] > 0) {
        first_row_.push_back(row);
        group_.push_back(static_cast<std::int64_t>(group));
        rows_.push_back(static_cast<int>(matmul.rows[group]));
      }
      row += matmul.rows[group];
    }
    const std::size_t count = rows_.size();
    n_.assign(count, static_cast<int>(matmul.n));
    k_.assign(count, static_cast<int>(matmul.k));
    ones_.assign(count, 1);
    transposed_.assign(count, CUBLAS_OP_T);
    plain_.assign(count, CUBLAS_OP_N);
    const Scalar one(types_.scale, 1), zero(types_.scale, 0);
    const std::size_t bytes = types_.scale == CUDA_R_64F ? 8 : 4;
    for (std::size_t i = 0; i < count; ++i) {
      const auto *from_one = static_cast<const std::byte*>(one.data()),
                 *from_zero = static_cast<const std::byte*>(zero.data());
      alpha_.insert(alpha_.end(), from_one, from_one + bytes);
      beta_.insert(beta_.end(), from_zero, from_zero + bytes);
    }
  }

  Result<void> enqueue(Pointer a, Pointer b, Pointer c) {
    LLMPROF_LET(const Pointer table, addresses(a, b, c));
    const std::size_t step = rows_.size() * sizeof(Pointer);
    const auto* weights = reinterpret_cast<const void* const*>(table);
    const auto* inputs = reinterpret_cast<const void* const*>(table + step);
    auto* outputs = reinterpret_cast<void* const*>(table + 2 * step);
    return blas_.check(
        blas_.cublas.gemm_grouped(blas_.handle, transposed_.data(), plain_.data(), n_.data(), rows_.data(), k_.data(),
                                  alpha_.data(), weights, types_.operand, k_.data(), inputs, types_.operand, k_.data(),
                                  beta_.data(), outputs, types_.result, n_.data(), static_cast<int>(rows_.size()),
                                  ones_.data(), types_.compute),
        "cublasGemmGroupedBatchedEx");
  }

  bool empty() const { return rows_.empty(); }

 private:
  // Where the operands of each group lie, in the device's memory. Kept for each set of buffers, so that only the
  // product itself is timed.
  Result<Pointer> addresses(Pointer a, Pointer b, Pointer c) {
    const std::array key{a, b, c};
    if (const auto found = known_.find(key); found != known_.end()) return found->second.pointer();
    const std::int64_t n = n_.front(), k = k_.front();
    std::vector<Pointer> table;
    for (const std::int64_t group : group_) table.push_back(b + static_cast<Pointer>(group * n * k * operand_bytes_));
    for (const std::int64_t row : first_row_) table.push_back(a + static_cast<Pointer>(row * k * operand_bytes_));
    for (const std::int64_t row : first_row_) table.push_back(c + static_cast<Pointer>(row * n * result_bytes_));
    const auto bytes = static_cast<std::int64_t>(table.size() * sizeof(Pointer));
    LLMPROF_LET(Buffer buffer, blas_.context.allocate(bytes));
    LLMPROF_TRY(blas_.context.copy_in(buffer.pointer(), table.data(), bytes));
    return known_.emplace(key, std::move(buffer)).first->second.pointer();
  }

  BlasState& blas_;
  BlasTypes types_;
  std::int64_t operand_bytes_, result_bytes_;
  std::vector<std::int64_t> first_row_, group_;  // of the groups that have rows
  std::vector<int> rows_, n_, k_, ones_;
  std::vector<cublasOperation_t> transposed_, plain_;
  std::vector<std::byte> alpha_, beta_;
  std::map<std::array<Pointer, 3>, Buffer> known_;
};

}  // namespace

BlasState::~BlasState() {
  prepared.clear();
  if (handle != nullptr) cublas.destroy(handle);
  if (lt_handle != nullptr) lt.destroy(lt_handle);
}

Result<void> BlasState::check(cublasStatus_t status, const char* what) const {
  if (status == CUBLAS_STATUS_SUCCESS) return {};
  const bool here = status == CUBLAS_STATUS_NOT_SUPPORTED || status == CUBLAS_STATUS_ARCH_MISMATCH ||
                    status == CUBLAS_STATUS_INVALID_VALUE || status == CUBLAS_STATUS_ALLOC_FAILED;
  return Error{here ? ErrorCode::kUnsupported : ErrorCode::kInternal,
               fmt::format("{}: {} ({})", what, lt.status_text(status), version), ""};
}

Result<std::shared_ptr<Blas>> open_blas(Context& context) {
  auto state = std::make_unique<BlasState>(context);
  auto api = base::load_api<LtApi>(library_names("libcublasLt"), LtApi::symbols());
  if (!api) {
    return Error{ErrorCode::kUnsupported, "cuBLASLt was not found: " + api.error().message,
                 "install CUDA's cuBLAS, or add its folder to LD_LIBRARY_PATH"};
  }
  state->lt = *api;
  state->version = version_text(api->version());
  LLMPROF_TRY(state->check(api->create(&state->lt_handle), "cublasLtCreate"));
  LLMPROF_LET(state->workspace, context.allocate(kWorkspaceBytes));
  open_cublas(*state);
  return std::make_shared<Blas>(std::move(state));
}

Blas::Blas(std::unique_ptr<BlasState> state) : state_(std::move(state)) {}
Blas::~Blas() = default;
const std::string& Blas::version() const { return state_->version; }

Result<PreparedMatmul> Blas::prepare(const Matmul& matmul, const Search& search) {
  if (const auto found = state_->prepared.find(matmul); found != state_->prepared.end()) return found->second;
  LLMPROF_TRY(check_supported(matmul, state_->context.properties()));
  LLMPROF_LET(const std::shared_ptr<MatmulPlan> plan, MatmulPlan::make(*state_, matmul));
  LLMPROF_LET(const Found found, fastest(*state_, *plan, search));
  const PreparedMatmul prepared{.enqueue = [plan, algorithm = found.algorithm](
                                               Pointer a, Pointer b, Pointer c,
                                               Stream stream) { return plan->enqueue(algorithm, a, b, c, stream); },
                                .method = plan->describe(found.algorithm) + ", " + found.how,
                                .workspace_bytes = static_cast<std::int64_t>(found.algorithm.workspace_bytes)};
  state_->prepared.emplace(matmul, prepared);
  return prepared;
}

Result<PreparedMatmul> Blas::prepare_grouped(const GroupedMatmul& matmul) {
  if (state_->handle == nullptr || state_->cublas.gemm_grouped == nullptr) {
    return Error{ErrorCode::kUnsupported, state_->version + " has no cublasGemmGroupedBatchedEx",
                 "it came with cuBLAS 12.5"};
  }
  if (type_bytes(matmul.type) == 1) {
    return unsupported_error("cublasGemmGroupedBatchedEx does not multiply {}", type_name(matmul.type));
  }
  std::int64_t largest = std::max(matmul.n, matmul.k);
  for (const std::int64_t rows : matmul.rows) largest = std::max(largest, rows);
  if (largest > std::numeric_limits<int>::max()) {
    return unsupported_error("cublasGemmGroupedBatchedEx counts in 32 bits: {} is more", largest);
  }
  const auto plan = std::make_shared<GroupedPlan>(*state_, matmul);
  if (plan->empty()) return Error{ErrorCode::kUsage, "no group has any row", ""};
  return PreparedMatmul{.enqueue = [plan](Pointer a, Pointer b, Pointer c, Stream) { return plan->enqueue(a, b, c); },
                        .method = state_->version + ", cublasGemmGroupedBatchedEx",
                        .workspace_bytes = state_->workspace.bytes()};
}

}  // namespace llmprof::bench::cuda
