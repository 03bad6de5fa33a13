// Groups of rows in one call of cublasGemmGroupedBatchedEx. It wants the sizes in host memory and the addresses in the
// device's.

#include <fmt/format.h>

#include <array>

#include "bench/cuda/blas_library.h"

namespace llmprof::bench::cuda {
namespace {

class GroupedPlan {
 public:
  GroupedPlan(BlasState& blas, const GroupedMatmul& matmul);
  Result<void> enqueue(Pointer a, Pointer b, Pointer c);
  bool empty() const { return rows_.empty(); }

 private:
  // Where the operands of each group lie, in the device's memory. Kept for each set of buffers, so that only the
  // product itself is timed.
  Result<Pointer> addresses(Pointer a, Pointer b, Pointer c);

  BlasState& blas_;
  BlasTypes types_;
  std::int64_t operand_bytes_, result_bytes_;
  std::vector<std::int64_t> first_row_, group_;  // of the groups that have rows
  std::vector<int> rows_, n_, k_, ones_;
  std::vector<cublasOperation_t> transposed_, plain_;
  std::vector<std::byte> alpha_, beta_;
  std::map<std::array<Pointer, 3>, Buffer> known_;
};

GroupedPlan::GroupedPlan(BlasState& blas, const GroupedMatmul& matmul)
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

Result<Pointer> GroupedPlan::addresses(Pointer a, Pointer b, Pointer c) {
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

Result<void> GroupedPlan::enqueue(Pointer a, Pointer b, Pointer c) {
  LLMPROF_LET(const Pointer table, addresses(a, b, c));
  const std::size_t step = rows_.size() * sizeof(Pointer);
  const auto* weights = reinterpret_cast<const void* const*>(table);
  const auto* inputs = reinterpret_cast<const void* const*>(table + step);
  auto* outputs = reinterpret_cast<void* const*>(table + 2 * step);
  return blas_.check(blas_.cublas.gemm_grouped(blas_.handle, transposed_.data(), plain_.data(), n_.data(), rows_.data(),
                                               k_.data(), alpha_.data(), weights, types_.operand, k_.data(), inputs,
                                               types_.operand, k_.data(), beta_.data(), outputs, types_.result,
                                               n_.data(), static_cast<int>(rows_.size()), ones_.data(), types_.compute),
                     "cublasGemmGroupedBatchedEx");
}

}  // namespace

Result<PreparedMatmul> Blas::prepare_grouped(const GroupedMatmul& matmul) {
  if (state_->handle == nullptr || state_->cublas.gemm_grouped == nullptr) {
    return Error{ErrorCode::kUnsupported, state_->version + " has no cublasGemmGroupedBatchedEx",
                 "it came with cuBLAS 12.5"};
  }
  if (type_bytes(matmul.type) == 1) {
    return Error{ErrorCode::kUnsupported,
                 fmt::format("cublasGemmGroupedBatchedEx does not multiply {}", type_name(matmul.type)), ""};
  }
  std::int64_t largest = std::max(matmul.n, matmul.k);
  for (const std::int64_t rows : matmul.rows) largest = std::max(largest, rows);
  if (largest > std::numeric_limits<int>::max()) {
    return Error{ErrorCode::kUnsupported,
                 fmt::format("cublasGemmGroupedBatchedEx counts in 32 bits: {} is more", largest), ""};
  }
  const auto plan = std::make_shared<GroupedPlan>(*state_, matmul);
  if (plan->empty()) return Error{ErrorCode::kUsage, "no group has any row", ""};
  return PreparedMatmul{.enqueue = [plan](Pointer a, Pointer b, Pointer c, Stream) { return plan->enqueue(a, b, c); },
                        .method = state_->version + ", cublasGemmGroupedBatchedEx",
                        .workspace_bytes = state_->workspace.bytes()};
}

}  // namespace llmprof::bench::cuda
