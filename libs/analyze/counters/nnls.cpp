#include "analyze/counters/unmix.h"

#include <algorithm>
#include <cmath>

namespace llmprof::analyze::counters {
namespace {

constexpr double kSingular = 1e-9;  // of a pivot, of the diagonal element that it came from

std::vector<double> part_of(const std::vector<double>& values, const std::vector<std::size_t>& chosen) {
  std::vector<double> part;
  for (const std::size_t i : chosen) part.push_back(values[i]);
  return part;
}

// Lawson and Hanson's: the column that helps most is let in, and those that it drives below 0 are put out.
class Solver {
 public:
  Solver(const SquareMatrix& gram, const std::vector<double>& right)
      : gram_(gram), right_(right), barred_(right.size(), false), x_(right.size(), 0) {}

  Nnls run() {
    for (std::size_t round = 0; round < 10 * right_.size(); ++round) {
      const std::size_t best = most_helpful();
      if (best == right_.size()) break;
      if (!let_in(best)) continue;
      while (!chosen_.empty() && !settled()) {
      }
    }
    std::ranges::sort(chosen_);
    return {x_, chosen_};
  }

 private:
  std::size_t most_helpful() const {
    std::size_t best = right_.size();
    double most = 0;
    for (std::size_t j = 0; j < right_.size(); ++j) {
      if (barred_[j] || gram_.at(j, j) <= 0 || std::ranges::find(chosen_, j) != chosen_.end()) continue;
      double gradient = right_[j];
      for (const std::size_t i : chosen_) gradient -= gram_.at(j, i) * x_[i];
      const double gain = gradient / std::sqrt(gram_.at(j, j));  // whatever the column's scale
      if (gain > most && gradient > 1e-10 * std::abs(right_[j])) most = gain, best = j;
    }
    return best;
  }

  bool let_in(std::size_t column) {
    chosen_.push_back(column);
    if (cholesky(gram_.part(chosen_))) return true;
    chosen_.pop_back();
    barred_[column] = true;  // it depends on the others
    return false;
  }

  // True: the best of the chosen columns is not negative anywhere.
  bool settled() {
    const auto factor = cholesky(gram_.part(chosen_));
    if (!factor) return put_out(chosen_.size() - 1), false;
    const std::vector<double> wanted = solve(*factor, part_of(right_, chosen_));
    double step = 1;
    std::size_t first_at_zero = chosen_.size();
    for (std::size_t k = 0; k < chosen_.size(); ++k) {
      if (wanted[k] > 0) continue;
      const double now = x_[chosen_[k]];
      const double until_zero = now > 0 ? now / (now - wanted[k]) : 0;
      if (first_at_zero == chosen_.size() || until_zero < step) step = until_zero, first_at_zero = k;
    }
    if (first_at_zero == chosen_.size()) step = 1;
    for (std::size_t k = 0; k < chosen_.size(); ++k) x_[chosen_[k]] += step * (wanted[k] - x_[chosen_[k]]);
    if (first_at_zero == chosen_.size()) return true;
    put_out(first_at_zero);
    return false;
  }

  void put_out(std::size_t k) {
    x_[chosen_[k]] = 0;
    chosen_.erase(chosen_.begin() + static_cast<std::ptrdiff_t>(k));
  }

  const SquareMatrix& gram_;
  const std::vector<double>& right_;
  std::vector<bool> barred_;
  std::vector<double> x_;
  std::vector<std::size_t> chosen_;
};

}  // namespace

SquareMatrix SquareMatrix::part(const std::vector<std::size_t>& chosen) const {
  SquareMatrix part(chosen.size());
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    for (std::size_t j = 0; j < chosen.size(); ++j) part.at(i, j) = at(chosen[i], chosen[j]);
  }
  return part;
}

std::optional<SquareMatrix> cholesky(const SquareMatrix& matrix) {
  SquareMatrix factor(matrix.size());
  for (std::size_t i = 0; i < matrix.size(); ++i) {
    for (std::size_t j = 0; j <= i; ++j) {
      double sum = matrix.at(i, j);
      for (std::size_t k = 0; k < j; ++k) sum -= factor.at(i, k) * factor.at(j, k);
      if (i == j && sum <= kSingular * matrix.at(i, i)) return std::nullopt;
      factor.at(i, j) = i == j ? std::sqrt(sum) : sum / factor.at(j, j);
    }
  }
  return factor;
}

std::vector<double> solve(const SquareMatrix& factor, std::vector<double> right) {
  const std::size_t size = factor.size();
  for (std::size_t i = 0; i < size; ++i) {
    for (std::size_t k = 0; k < i; ++k) right[i] -= factor.at(i, k) * right[k];
    right[i] /= factor.at(i, i);
  }
  for (std::size_t i = size; i-- > 0;) {
    for (std::size_t k = i + 1; k < size; ++k) right[i] -= factor.at(k, i) * right[k];
    right[i] /= factor.at(i, i);
  }
  return right;
}

SquareMatrix inverse(const SquareMatrix& factor) {
  SquareMatrix inverse(factor.size());
  for (std::size_t j = 0; j < factor.size(); ++j) {
    std::vector<double> unit(factor.size(), 0);
    unit[j] = 1;
    const std::vector<double> column = solve(factor, std::move(unit));
    for (std::size_t i = 0; i < factor.size(); ++i) inverse.at(i, j) = column[i];
  }
  return inverse;
}

Nnls nnls(const SquareMatrix& gram, const std::vector<double>& right) { return Solver(gram, right).run(); }

}  // namespace llmprof::analyze::counters
