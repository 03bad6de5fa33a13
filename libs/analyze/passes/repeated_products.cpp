#include "analyze/passes/repeated_products.h"

#include <algorithm>

namespace llmprof::analyze {
namespace {

constexpr std::int64_t kLeastRepetitions = 3;
constexpr double kLeastOfUsual = 0.5;  // a pass with fewer products than this part of the usual number is none

struct Product {  // a row of `in` values becomes one of `out`, `rows` times
  MatrixSize size;
  std::int64_t rows = 0;
};

// Batched calls are attention's. Libraries that store columns first get the transposed problem: their n are the rows.
std::optional<Product> product_of(const CallShape& shape) {
  if (shape.batch != 1 || shape.k <= 0) return {};
  const bool by_rows = shape.order == CallShape::Order::kRowMajor;
  const std::int64_t out = by_rows ? shape.n : shape.m, rows = by_rows ? shape.m : shape.n;
  if (out <= 0 || rows <= 0) return {};
  return Product{{shape.k, out}, rows};
}

void count(const Calls& calls, std::map<MatrixSize, std::int64_t>& counts) {
  for (std::size_t i = 0; i < calls.size(); ++i) {
    if (const auto product = product_of(calls.shapes[calls.shape[i]])) ++counts[product->size];
  }
}

// The products of one pass as they come.
class Pass {
 public:
  bool separated() const { return logits_rows_ > 0; }
  bool complete() const { return separated() && !rows_.empty(); }  // logits alone are no pass
  std::int64_t products() const { return products_; }

  void add(const Product& product, bool separates, std::int64_t begin_ns, std::int64_t end_ns) {
    if (products_++ == 0) begin_ns_ = begin_ns;
    end_ns_ = std::max(end_ns_, end_ns);
    if (separates) {
      logits_rows_ = std::max(logits_rows_, product.rows);
    } else {
      ++rows_[product.rows];
    }
  }

  MatchedPass finish(std::int64_t thread_id, std::int32_t segment) {
    return {.thread_id = thread_id,
            .begin_ns = begin_ns_,
            .end_ns = end_ns_,
            .segment = segment,
            .rows = most_common(rows_),
            .logits_rows = logits_rows_,
            .share = kRepeatedShare};
  }

 private:
  std::int64_t products_ = 0, logits_rows_ = 0, begin_ns_ = 0, end_ns_ = 0;
  std::map<std::int64_t, std::int64_t> rows_;
};

struct Found {
  MatchedPass pass;
  std::int64_t products = 0;
  std::size_t first_call = 0, end_call = 0;
};

// Passes of one thread and segment: calls [begin, end).
void find_passes(const Calls& calls, const MatrixSize& separator, std::size_t begin, std::size_t end,
                 std::vector<Found>& out) {
  Pass pass;
  std::size_t first = begin;
  const auto close = [&](std::size_t at) {
    if (pass.complete()) {
      out.push_back({pass.finish(calls.thread_id[begin], calls.segment[begin]), pass.products(), first, at});
    }
    pass = {};
    first = at;
  };
  for (std::size_t i = begin; i < end; ++i) {
    const auto product = product_of(calls.shapes[calls.shape[i]]);
    if (!product) continue;
    const bool separates = product->size == separator;
    // Logits made in parts follow each other; any other product behind them begins the next pass.
    if (!separates && pass.separated()) close(i);
    pass.add(*product, separates, calls.begin_ns[i], calls.end_ns[i]);
  }
  close(end);
}

}  // namespace

std::int64_t most_common(const std::map<std::int64_t, std::int64_t>& counts) {
  std::int64_t best = 0, most = 0;
  for (const auto& [value, times] : counts) {
    if (times > most) best = value, most = times;
  }
  return best;
}

std::optional<MatrixSize> separating_matrix(const Calls& calls, const Calls& captured) {
  std::map<MatrixSize, std::int64_t> counts, in_graphs;
  count(calls, counts);
  count(captured, in_graphs);
  for (const auto& [size, times] : in_graphs) counts[size] += std::max(times, kLeastRepetitions);  // launched often
  std::optional<MatrixSize> best;
  for (const auto& [size, times] : counts) {
    if (times < kLeastRepetitions) continue;
    const auto elements = [](const MatrixSize& matrix) {
      return static_cast<double>(matrix.first) * static_cast<double>(matrix.second);
    };
    if (!best || elements(size) > elements(*best)) best = size;
  }
  return best;
}

Matches repeated_passes(const Calls& calls, const MatrixSize& separator) {
  std::vector<Found> found;
  for (std::size_t begin = 0; begin < calls.size();) {
    std::size_t end = begin;
    while (end < calls.size() && calls.thread_id[end] == calls.thread_id[begin] &&
           calls.segment[end] == calls.segment[begin]) {
      ++end;
    }
    if (calls.segment[begin] != kNone) find_passes(calls, separator, begin, end, found);
    begin = end;
  }
  std::map<std::int64_t, std::int64_t> sizes;
  for (const Found& pass : found) ++sizes[pass.products];
  const std::int64_t usual = most_common(sizes);
  Matches out;
  out.calls.resize(calls.size());
  for (const Found& pass : found) {
    if (usual < 2 || static_cast<double>(pass.products) < kLeastOfUsual * static_cast<double>(usual)) continue;
    for (std::size_t i = pass.first_call; i < pass.end_call; ++i) {
      out.calls[i].pass = static_cast<std::int32_t>(out.passes.size());
    }
    out.passes.push_back(pass.pass);
  }
  return out;
}

}  // namespace llmprof::analyze
