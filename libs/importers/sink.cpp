#include "importers/sink.h"

#include <algorithm>

#include "importers/text.h"

namespace llmprof::importers {
namespace {

constexpr std::size_t kBufferBytes = 256 << 10;  // of one table, before it is handed over
constexpr std::size_t kPlacesKept = 3;
constexpr std::size_t kKindsOfLoss = 64;  // of one file: `what` is ours, so there are few

bool is_identity(const trace::Table& table) {
  return &table == &trace::table_of<trace::ProcessRow>() || &table == &trace::table_of<trace::ThreadRow>() ||
         &table == &trace::table_of<trace::DeviceRow>();
}

}  // namespace

trace::Name Sink::name(std::string_view text) {
  if (text.size() > kMaxNameBytes) {
    lose(trace::Loss::kNameTruncated, 1);
    text = text.substr(0, kMaxNameBytes);
  }
  std::string repaired;
  if (!is_utf8(text)) {
    repaired = to_utf8(text);
    lose(trace::Loss::kInputRepaired, 1, "names with bytes that are not UTF-8");
    text = repaired;
  }
  const bool full = names_.size() >= kMaxNames || name_bytes_ + text.size() > kMaxAllNameBytes;
  if (full && !names_.knows(text)) {
    lose(trace::Loss::kStringTableFull, 1);
    return names_.intern("<other>");
  }
  const std::size_t before = names_.size();
  const trace::Name name = names_.intern(text);
  if (names_.size() != before) name_bytes_ += text.size();
  return name;
}

void Sink::lose(trace::Loss loss, std::int64_t count, std::string_view what, std::string_view where) {
  if (count <= 0) return;
  auto sum = std::ranges::find_if(losses_, [&](const LossSum& s) { return s.loss == loss && s.what == what; });
  if (sum == losses_.end()) {
    if (losses_.size() >= kKindsOfLoss) return lose(losses_.front().loss, count, losses_.front().what);
    losses_.push_back({loss, std::string(what), 0, {}});
    sum = losses_.end() - 1;
  }
  sum->count += count;
  if (!where.empty() && sum->where.size() < kPlacesKept) sum->where.emplace_back(where);
}

void Sink::add_bytes(const trace::Table& table, const void* row) {
  auto buffer = std::ranges::find_if(buffers_, [&](const Buffer& b) { return b.table == &table; });
  if (buffer == buffers_.end()) {
    buffers_.push_back({&table, is_identity(table), {}});
    buffer = buffers_.end() - 1;
    buffer->rows.reserve(kBufferBytes + table.row_bytes);
  }
  const auto* bytes = static_cast<const std::byte*>(row);
  buffer->rows.insert(buffer->rows.end(), bytes, bytes + table.row_bytes);
  if (buffer->rows.size() >= kBufferBytes) hand_over(*buffer);
}

void Sink::hand_over(Buffer& buffer) {
  flush_names();
  for (Buffer& first : buffers_) {
    if (!first.identity || first.rows.empty()) continue;
    take_rows(*first.table, first.rows.data(), first.rows.size() / first.table->row_bytes);
    first.rows.clear();
  }
  if (buffer.rows.empty()) return;
  take_rows(*buffer.table, buffer.rows.data(), buffer.rows.size() / buffer.table->row_bytes);
  buffer.rows.clear();
}

void Sink::flush_names() {
  if (names_.size() == names_handed_over_) return;
  std::vector<std::string_view> texts;
  const auto first = static_cast<std::uint32_t>(names_handed_over_ + 1);
  for (auto id = first; id <= names_.size(); ++id) texts.push_back(names_.text(trace::Name{id}));
  names_handed_over_ = names_.size();
  take_names(trace::Name{first}, texts);
}

void Sink::flush() {
  flush_names();
  for (Buffer& buffer : buffers_) hand_over(buffer);
  for (const LossSum& sum : losses_) {
    std::string detail = sum.what;
    for (const std::string& where : sum.where)
      detail += (&where == sum.where.data() ? (detail.empty() ? "at " : ", at ") : ", ") + where;
    if (!sum.where.empty() && sum.count > static_cast<std::int64_t>(sum.where.size())) detail += ", …";
    take_loss(sum.loss, sum.count, detail);
  }
  losses_.clear();
}

}  // namespace llmprof::importers
