#include "analyze/rules/facts/products.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "analyze/questions.h"
#include "analyze/rows_of.h"

namespace llmprof::analyze {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

std::int64_t number_at(std::string_view text, std::size_t& at) {
  std::int64_t out = 0;
  const auto [end, error] = std::from_chars(text.data() + at, text.data() + text.size(), out);
  at = static_cast<std::size_t>(end - text.data());
  return error == std::errc() ? out : 0;
}

template <std::size_t N>
bool holds_any(std::string_view text, const std::array<std::string_view, N>& words) {
  return std::any_of(words.begin(), words.end(), [&](std::string_view word) { return text.find(word) != text.npos; });
}

}  // namespace

Result<std::vector<ProductKernel>> product_kernels(const trace::Run& run) {
  std::vector<ProductKernel> out;
  LLMPROF_LET(const trace::ResultTable table, ask(run, "sql/product_kernels"));
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    const RowView row{table, i};
    out.push_back({.stage = row.text("stage"),
                   .type = row.text("type"),
                   .compute_type = row.text("compute_type"),
                   .kernel = row.text("name"),
                   .m = row.integer("m"),
                   .n = row.integer("n"),
                   .k = row.integer("k"),
                   .batch = row.integer("batch"),
                   .executions = row.integer("executions"),
                   .time_ns = row.integer("time_ns"),
                   .blocks = row.integer("blocks"),
                   .threads = row.integer("threads"),
                   .registers = row.integer("registers"),
                   .shared_bytes = row.integer("shared_bytes")});
  }
  return out;
}

std::optional<Tile> tile_of(std::string_view kernel) {
  for (std::size_t at = 0; at < kernel.size(); ++at) {
    if (!is_digit(kernel[at]) || (at > 0 && is_digit(kernel[at - 1]))) continue;
    std::size_t end = at;
    const std::int64_t m = number_at(kernel, end);
    if (end + 1 >= kernel.size() || kernel[end] != 'x' || !is_digit(kernel[end + 1])) continue;
    ++end;
    const std::int64_t n = number_at(kernel, end);
    // Warps and stages are smaller, and sizes of a whole matrix larger; a tile is no vector either.
    if (m >= 8 && n >= 8 && m <= 512 && n <= 512 && m * n >= 512) return Tile{m, n};
  }
  return std::nullopt;
}

bool splits_inner(std::string_view kernel) {
  static constexpr std::array<std::string_view, 4> kWords = {"splitK", "split_k", "splitk", "stream_k"};
  return holds_any(kernel, kWords);
}

bool without_tensor_cores(std::string_view kernel) {
  static constexpr std::array<std::string_view, 4> kWords = {"_ffma_", "simt", "sgemm", "gemmSN"};
  static constexpr std::array<std::string_view, 2> kTensor = {"tensorop", "s1688"};
  return holds_any(kernel, kWords) && !holds_any(kernel, kTensor);
}

}  // namespace llmprof::analyze
