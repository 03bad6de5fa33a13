// What Nsight says about its own recording: see about.h.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <unordered_map>

#include "importers/nsys_sqlite/about.h"

namespace llmprof::importers::nsys {
namespace {

constexpr std::int64_t kWarning = 2, kError = 3;  // of ENUM_DIAGNOSTIC_SEVERITY_LEVEL
constexpr std::size_t kMostMessages = 100, kMostLosses = 16, kMostText = 300, kMostThreads = 65536;

bool tells_of_loss(std::string text) {
  std::ranges::transform(text, text.begin(),
                         [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  constexpr std::array<std::string_view, 9> kWords{"lost",    "dropped",       "drop ",      "discard",     "overflow",
                                                   "missing", "not collected", "incomplete", "insufficient"};
  return std::ranges::any_of(kWords, [&](std::string_view word) { return text.find(word) != std::string::npos; });
}

}  // namespace

Result<void> read_diagnostics(Database& database) {
  Sink& sink = database.sink();
  LLMPROF_LET(Rows rows, database.rows("DIAGNOSTIC_EVENT", {"timestamp", "severity", "text"}, 3));
  std::size_t messages = 0, losses = 0;
  while (rows.next()) {
    const auto ns = rows.integer(0), severity = rows.integer(1);
    const auto text = rows.text(2);
    if (!severity || !text || (*severity != kWarning && *severity != kError)) continue;
    std::string message(text->substr(0, kMostText));
    if (tells_of_loss(message)) {
      sink.lose(trace::Loss::kToolLost, 1, ++losses <= kMostLosses ? message : "further messages of Nsight Systems");
      continue;
    }
    if (++messages > kMostMessages) continue;
    const std::int64_t when_ns = ns && is_time(*ns) ? *ns : 0;
    const std::string_view level = *severity == kError ? "error" : "warning";
    sink.add(
        trace::NoteRow{when_ns, std::nullopt, sink.name("nsys"), sink.name(fmt::format("{}: {}", level, message))});
  }
  return rows.finish();
}

// Intervals lie inside each other; every thread's time is counted once.
Result<void> read_overhead(Database& database) {
  Sink& sink = database.sink();
  LLMPROF_LET(Rows rows, database.rows("PROFILER_OVERHEAD", {"start", "end", "globalTid"}, 2));
  std::unordered_map<std::int64_t, std::int64_t> until_ns;  // by thread; some of them are Nsight's own
  std::int64_t intervals = 0, total_ns = 0;
  while (rows.next()) {
    const auto start = rows.integer(0), end = rows.integer(1);
    if (!start || !end || *end < *start || !is_time(*start) || !is_time(*end)) {
      rows.lose(trace::Loss::kBadTime, "times");
      continue;
    }
    if (until_ns.size() > kMostThreads) until_ns.clear();
    std::int64_t& until = until_ns.try_emplace(rows.integer_or(2, 0), INT64_MIN).first->second;
    total_ns += std::max<std::int64_t>(0, *end - std::max(*start, until));
    until = std::max(until, *end);
    ++intervals;
  }
  if (intervals > 0)
    sink.add(trace::NoteRow{0, std::nullopt, sink.name("nsys"),
                            sink.name(fmt::format("Nsight Systems says that it took {:.3f} ms of the program's threads "
                                                  "itself, in {} intervals",
                                                  static_cast<double>(total_ns) / 1e6, intervals))});
  return rows.finish();
}

}  // namespace llmprof::importers::nsys
