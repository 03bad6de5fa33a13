#pragma once
// A sink that keeps everything, for tests and fuzz targets.

#include <map>

#include "importers/sink.h"

namespace llmprof::importers {

class MemorySink : public Sink {
 public:
  template <class Row>
  std::vector<Row> rows() const {
    const auto found = tables_.find(std::string(trace::table_of<Row>().name));
    if (found == tables_.end()) return {};
    std::vector<Row> rows(found->second.size() / sizeof(Row));
    for (std::size_t i = 0; i < rows.size(); ++i)
      std::memcpy(static_cast<void*>(&rows[i]), found->second.data() + i * sizeof(Row), sizeof(Row));
    return rows;
  }
  std::string_view text(trace::Name name) const { return names().text(name); }
  std::int64_t lost(trace::Loss loss) const {
    const auto found = losses.find(loss);
    return found == losses.end() ? 0 : found->second;
  }

  void set_clock(FileClock c) override { clock = std::move(c); }
  void set_facts(FileFacts f) override { facts = std::move(f); }
  bool progress(std::uint64_t done) override { return done < stop_after; }

  FileClock clock;
  FileFacts facts;
  std::map<trace::Loss, std::int64_t> losses;
  std::vector<std::string> details;       // "input_damaged 2: lines, at line 3"
  std::uint64_t stop_after = UINT64_MAX;  // progress() is false from this many bytes on

 private:
  void take_names(trace::Name, std::span<const std::string_view>) override {}
  void take_rows(const trace::Table& table, const std::byte* rows, std::size_t count) override {
    std::vector<std::byte>& kept = tables_[std::string(table.name)];
    kept.insert(kept.end(), rows, rows + count * table.row_bytes);
  }
  void take_loss(trace::Loss loss, std::int64_t count, std::string_view detail) override {
    losses[loss] += count;
    details.push_back(std::string(trace::info_of(loss).name) + " " + std::to_string(count) + ": " +
                      std::string(detail));
  }
  std::map<std::string, std::vector<std::byte>> tables_;
};

}  // namespace llmprof::importers
