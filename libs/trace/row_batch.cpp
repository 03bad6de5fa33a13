#include "trace/row_batch.h"

#include <algorithm>
#include <cstring>
#include <map>

#include "base/assert.h"

namespace llmprof::trace {
namespace {

using Rows = std::vector<const std::byte*>;

constexpr std::uint32_t kUnused = UINT32_MAX;

template <class T>
T load(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

RowBatch::Dictionary make_dictionary(const Column& column, const Rows& rows, const Strings& strings) {
  RowBatch::Dictionary dictionary;
  dictionary.codes.assign(strings.size() + 1, kUnused);
  for (const std::byte* row : rows) {
    const auto name = load<Name>(row + column.offset);
    std::uint32_t& code = dictionary.codes[name.id];
    if (code != kUnused || name.id == 0) continue;
    code = static_cast<std::uint32_t>(dictionary.texts.size());
    dictionary.texts.push_back(strings.text(name).data());
  }
  return dictionary;
}

// Threads hand in their rows in runs, so the last lane is usually the next one too.
std::map<std::int64_t, Rows> split_by_lane(const Rows& rows, std::size_t lane_offset) {
  std::map<std::int64_t, Rows> lanes;
  auto current = lanes.end();
  for (const std::byte* row : rows) {
    const auto lane = load<std::int64_t>(row + lane_offset);
    if (current == lanes.end() || current->first != lane) current = lanes.try_emplace(lane).first;
    current->second.push_back(row);
  }
  return lanes;
}

void sort_by_key(Rows& rows, std::size_t key_offset) {
  const auto key_of = [&](const std::byte* row) { return load<std::int64_t>(row + key_offset); };
  if (std::ranges::is_sorted(rows, {}, key_of)) return;
  std::vector<std::pair<std::int64_t, std::uint32_t>> order(rows.size());  // keys side by side: the rows are far apart
  for (std::uint32_t i = 0; i < order.size(); ++i) order[i] = {key_of(rows[i]), i};
  std::ranges::sort(order);
  Rows sorted(rows.size());
  for (std::size_t i = 0; i < order.size(); ++i) sorted[i] = rows[order[i].second];
  rows = std::move(sorted);
}

}  // namespace

RowBatch::RowBatch(const Table& table, std::vector<const std::byte*> rows, const Strings& strings)
    : table_(&table), rows_(std::move(rows)) {
  for (const Column& column : table.columns) {
    dictionaries_.push_back(column.type == ColumnType::kName ? make_dictionary(column, rows_, strings) : Dictionary{});
  }
}

void RowBatch::sort() {
  if (table_->sort_by.empty()) return;
  const Column& key = *table_->find(table_->sort_by);
  LLMPROF_ASSERT(key.type == ColumnType::kInt64);
  if (table_->lane.empty()) return sort_by_key(rows_, key.offset);
  auto out = rows_.begin();
  for (auto& [lane, rows] : split_by_lane(rows_, table_->find(table_->lane)->offset)) {
    sort_by_key(rows, key.offset);
    out = std::ranges::copy(rows, out).out;
  }
}

}  // namespace llmprof::trace
