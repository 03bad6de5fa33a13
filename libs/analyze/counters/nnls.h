#pragma once
// Small symmetric systems: non-negative least squares by an active set, on the normal equations.

#include <cstddef>
#include <optional>
#include <vector>

namespace llmprof::analyze::counters {

class SquareMatrix {
 public:
  explicit SquareMatrix(std::size_t size) : size_(size), values_(size * size, 0) {}
  double& at(std::size_t row, std::size_t column) { return values_[row * size_ + column]; }
  double at(std::size_t row, std::size_t column) const { return values_[row * size_ + column]; }
  std::size_t size() const { return size_; }
  // Of these rows and columns.
  SquareMatrix part(const std::vector<std::size_t>& chosen) const;

 private:
  std::size_t size_;
  std::vector<double> values_;
};

// L of L L^T; none where the matrix is singular to rounding.
std::optional<SquareMatrix> cholesky(const SquareMatrix& matrix);
std::vector<double> solve(const SquareMatrix& factor, std::vector<double> right);
SquareMatrix inverse(const SquareMatrix& factor);

// x >= 0 that minimises x^T G x / 2 - b^T x; `chosen` are the numbers of those that are not held at 0, in order.
// Columns that depend on chosen ones stay at 0.
struct Nnls {
  std::vector<double> x;
  std::vector<std::size_t> chosen;
};
Nnls nnls(const SquareMatrix& gram, const std::vector<double>& right);

}  // namespace llmprof::analyze::counters
