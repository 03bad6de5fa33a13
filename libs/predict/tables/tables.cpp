#include "predict/tables/tables.h"

#include <algorithm>
#include <cmath>

#include "base/errors.h"
#include "base/numbers.h"
#include "base/strings.h"
#include "base/text_table.h"

namespace llmprof::predict {
namespace {

constexpr double kMostAt = 1e15;  // of any axis: beyond it, sizes times sizes stop to be numbers
constexpr double kMostNs = 1e12;  // a call of 1000 s
constexpr double kNsPerUs = 1000;
constexpr std::size_t kMaxOperators = 1000;

std::string shown(std::string_view text) { return base::shorten(base::printable(std::string(text)), 40); }

// Products are blended by their share of the roof, all others by their time above it: see Blend.
Blend blend_of(std::string_view op, const TableKind& kind) {
  return op.ends_with("_proj") || op == "lm_head" ? Blend::kUtilisation : kind.blend;
}

}  // namespace

std::span<const TableKind> table_kinds() {
  // Names that contain another's come first. `skew_fit` is no table of times: its rows go to SkewFit.
  static const std::vector<TableKind> kKinds{
      {"per_sequence", "layer", {"sequences"}},
      {"skew_fit", "", {"pc"}, "alpha"},
      {"all_reduce", "", {"bytes"}},
      {"attention",
       "",
       {"prefill_chunk", "kv_prefill", "n_decode", "kv_decode"},
       "time_us",
       Blend::kOverhead,
       {true, false, true, false}},
      {"dense", "layer", {"tokens"}},
      {"moe", "", {"tokens", "activated_experts"}},
  };
  return kKinds;
}

const TableKind* find_table_kind(std::string_view name) {
  for (const TableKind& kind : table_kinds()) {
    if (kind.name == name) return &kind;
  }
  return nullptr;
}

const TableKind* kind_of_file(std::string_view file_name) {
  const std::string name = base::lowercase(base::base_name(file_name));
  for (const TableKind& kind : table_kinds()) {
    if (base::contains(name, kind.name)) return &kind;
  }
  return nullptr;
}

Result<void> OperatorTables::add(const TableKind& kind, std::string_view op, std::span<const double> at, double ns) {
  if (!(ns > 0) || ns > kMostNs) return corrupt_error("a time of {} us cannot be one", ns / kNsPerUs);
  for (const double value : at) {
    if (!(value == 0 || value >= 1) || value > kMostAt) return corrupt_error("a size of {} cannot be one", value);
  }
  auto found = grids_.find(op);
  if (found == grids_.end()) {
    if (op.empty() || op.size() > 200) return corrupt_error("\"{}\" cannot be the name of an operator", shown(op));
    if (grids_.size() >= kMaxOperators) return corrupt_error("more than {} operators", kMaxOperators);
    found = grids_.emplace(std::string(op), Grid(at.size(), blend_of(op, kind), kind.apart)).first;
  }
  if (found->second.axes() != at.size()) {
    return corrupt_error("{} has {} axes, not {}", shown(op), found->second.axes(), at.size());
  }
  found->second.add(at, ns);
  return {};
}

Result<void> OperatorTables::add(std::string_view op, std::span<const double> at, double ns) {
  const TableKind* kind = find_table_kind(op);
  if (kind == nullptr) kind = find_table_kind("dense");
  if (kind->axes.size() != at.size())
    return corrupt_error("{} has {} axes, not {}", shown(op), kind->axes.size(), at.size());
  return add(*kind, op, at, ns);
}

Grid* OperatorTables::find(std::string_view op) {
  const auto found = grids_.find(op);
  return found == grids_.end() ? nullptr : &found->second;
}

const Grid* OperatorTables::find(std::string_view op) const { return const_cast<OperatorTables*>(this)->find(op); }

std::vector<std::string> OperatorTables::operators() const {
  std::vector<std::string> names;
  for (const auto& [name, grid] : grids_) names.push_back(name);
  return names;
}

TableRows::TableRows(const TableKind& kind, std::string where, OperatorTables& tables)
    : kind_(kind), where_(std::move(where)), tables_(tables) {
  if (kind.name == "skew_fit") {
    wanted_ = {"pc", "n_label", "skew_rate_label", "kv_big_label", "kp_label", "alpha", "n_samples"};
    return;
  }
  if (!kind.label.empty()) wanted_.push_back(kind.label);
  wanted_.insert(wanted_.end(), kind.axes.begin(), kind.axes.end());
  wanted_.push_back(kind.value);
}

Result<void> TableRows::header(std::span<const std::string_view> columns) {
  columns_ = columns.size();
  places_.clear();
  for (std::string_view& name : wanted_) {
    // Some measure an all-reduce by the tokens whose rows it adds.
    if (name == "bytes" && !std::ranges::count(columns, name) && std::ranges::count(columns, "tokens")) name = "tokens";
    const auto found = std::ranges::find(columns, name);
    if (found == columns.end()) {
      return Error{ErrorCode::kCorruptInput, fmt::format("{}:1: there is no column {}", where_, name),
                   fmt::format("a table {} has the columns {}", kind_.name, fmt::join(wanted_, ", "))};
    }
    places_.push_back(static_cast<std::size_t>(found - columns.begin()));
  }
  return {};
}

Result<double> TableRows::number(std::span<const std::string_view> cells, std::size_t column, std::int64_t line) const {
  const std::string_view text = base::trimmed(cells[places_[column]]);
  const auto value = base::parse_number<double>(text);
  if (!value || !std::isfinite(*value)) {
    return corrupt_error("{}:{}: {} is \"{}\", not a number", where_, line, wanted_[column], shown(text));
  }
  return *value;
}

Result<void> TableRows::row(std::span<const std::string_view> cells, std::int64_t line) {
  if (cells.size() != columns_) {
    return corrupt_error("{}:{}: {} cells, where the header has {}", where_, line, cells.size(), columns_);
  }
  if (++rows_ > kMaxRows) return corrupt_error("{}:{}: more than {} rows", where_, line, kMaxRows);
  if (kind_.name == "skew_fit") return skew_row(cells, line);
  const std::size_t labels = kind_.label.empty() ? 0 : 1;
  const bool by_tokens = kind_.axes[0] == "bytes" && wanted_[labels] == "tokens";
  const std::string_view op = by_tokens     ? "all_reduce_tokens"
                              : labels == 0 ? kind_.name
                                            : base::trimmed(cells[places_[0]]);
  std::array<double, Grid::kMaxAxes> at{};
  for (std::size_t i = 0; i < kind_.axes.size(); ++i) {
    LLMPROF_LET(at[i], number(cells, labels + i, line));
  }
  LLMPROF_LET(const double us, number(cells, places_.size() - 1, line));
  const auto added = tables_.add(kind_, op, std::span(at).first(kind_.axes.size()), us * kNsPerUs);
  if (!added) return corrupt_error("{}:{}: {}", where_, line, added.error().message);
  return {};
}

Result<void> TableRows::skew_row(std::span<const std::string_view> cells, std::int64_t line) {
  LLMPROF_LET(const double chunk, number(cells, 0, line));
  LLMPROF_LET(const double alpha, number(cells, 5, line));
  LLMPROF_LET(const double samples, number(cells, 6, line));
  std::vector<std::string_view> labels;
  for (std::size_t i = 1; i < 5; ++i) labels.push_back(base::trimmed(cells[places_[i]]));
  const auto added = tables_.skew.add(chunk, labels, alpha, samples);
  if (!added) return corrupt_error("{}:{}: {}", where_, line, added.error().message);
  return {};
}

}  // namespace llmprof::predict
