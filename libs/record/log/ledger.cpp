#include "record/log/ledger.h"

#include "trace/run_writer.h"

namespace llmprof::record {
namespace {

constexpr std::size_t kMaxRows = 100'000;  // a hostile log cannot fill memory with details
constexpr std::int64_t kWholeRun = -1;

// A log may claim any loss: sums stop at the largest number instead of wrapping.
void add_up(std::int64_t& total, std::int64_t count) {
  if (__builtin_add_overflow(total, count, &total)) total = INT64_MAX;
}

}  // namespace

void Ledger::add(trace::Loss loss, std::int64_t count, trace::OptionalId process_id, const std::string& detail) {
  if (count <= 0) return;
  const Key key{loss, process_id.value_or(kWholeRun), counts_.size() < kMaxRows ? detail : ""};
  add_up(counts_[key], count);
}

std::vector<LossTotal> Ledger::write(trace::RunWriter& writer, trace::Id& next_id) const {
  std::vector<LossTotal> totals;
  trace::Strings& strings = writer.strings();
  const auto optional_text = [&](std::string_view text) { return text.empty() ? trace::Name{} : strings.intern(text); };
  for (const auto& [key, count] : counts_) {
    const auto& [loss, process, detail] = key;
    const trace::LossInfo& info = trace::info_of(loss);
    trace::LossRow row;
    row.id = next_id++;
    if (process != kWholeRun) row.process_id = process;
    row.name = strings.intern(info.name);
    row.severity = strings.intern(trace::name_of(info.severity));
    row.count = count;
    row.unit = strings.intern(info.unit);
    row.meaning = strings.intern(info.meaning);
    row.remedy = optional_text(info.remedy);
    row.detail = optional_text(detail);
    writer.add(row);
    if (totals.empty() || totals.back().loss != loss || totals.back().detail != detail) {
      totals.push_back({loss, 0, detail});
    }
    add_up(totals.back().count, count);
  }
  return totals;
}

}  // namespace llmprof::record
