// Debug logs of NCCL (NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,COLL): who took part and what was asked. They carry no
// times, so collectives become totals by kind, type and size.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>

#include "base/numbers.h"
#include "base/strings.h"
#include "importers/importer.h"
#include "importers/input.h"
#include "importers/sink.h"
#include "importers/text.h"

namespace llmprof::importers {
namespace nccl_log {
namespace {

constexpr std::string_view kMark = " NCCL INFO ";

int sniff(std::string_view head) {
  return base::contains(head, kMark) || base::contains(head, "NCCL version ") ? 60 : 0;
}

struct Type {
  std::string_view name;
  std::int64_t bytes;
};
// By the number of ncclDataType_t.
constexpr std::array kTypes{Type{"int8", 1},    Type{"uint8", 1},    Type{"int32", 4},       Type{"uint32", 4},
                            Type{"int64", 8},   Type{"uint64", 8},   Type{"float16", 2},     Type{"float32", 4},
                            Type{"float64", 8}, Type{"bfloat16", 2}, Type{"float8_e4m3", 1}, Type{"float8_e5m2", 1}};

// The number behind " name "; -1 if there is none.
std::int64_t number_behind(std::string_view text, std::string_view name) {
  const std::size_t at = text.find(name);
  if (at == std::string_view::npos) return -1;
  return std::max<std::int64_t>(base::leading_number<std::int64_t>(text.substr(at + name.size())).value_or(-1), -1);
}

// The word behind " name "; "" if there is none.
std::string_view word_behind(std::string_view text, std::string_view name) {
  const std::size_t at = text.find(name);
  if (at == std::string_view::npos) return {};
  text.remove_prefix(at + name.size());
  return text.substr(0, std::min<std::size_t>(text.find(' '), 40));
}

class Reader {
 public:
  Reader(Input& input, Sink& sink) : sink_(sink), lines_(input, sink) {}

  Result<void> read() {
    LLMPROF_TRY(lines_.each([&](std::string_view line) { take(line); }));
    return finish();
  }

 private:
  struct Collective {
    std::string name;
    std::int64_t type, count, ranks;
    auto operator<=>(const Collective&) const = default;
  };
  struct Process {
    std::int64_t rank = -1, ranks = -1;                 // in the largest of its communicators
    std::map<std::string, std::int64_t> communicators;  // sizes by address
  };
  static constexpr std::size_t kMostKinds = 100'000, kMostCommunicators = 10'000;

  // "host:pid:tid [device] NCCL INFO text"
  void take(std::string_view line) {
    if (base::contains(line, " NCCL WARN ") && ++warnings_ <= 16) sink_.note("nccl", line.substr(0, 1000));
    const std::size_t mark = line.find(kMark);
    if (mark == std::string_view::npos) return;
    ++known_lines_;
    const std::string_view text = line.substr(mark + kMark.size());
    const std::int64_t pid = number_behind(line.substr(0, mark), ":");
    if (text.starts_with("NCCL version ")) version_ = text.substr(13, 40);
    if (base::contains(text, " Init COMPLETE") && pid >= 0) {
      Process& process = processes_[pid];
      const std::int64_t ranks = number_behind(text, " nranks ");
      if (ranks > process.ranks) process.rank = number_behind(text, " rank "), process.ranks = ranks;
      if (ranks > 0 && process.communicators.size() < kMostCommunicators)
        process.communicators[std::string(word_behind(text, " comm "))] = ranks;
    }
    const std::size_t count = text.find(": opCount ");
    if (count != std::string_view::npos) take_collective(text.substr(0, count), text);
  }

  void take_collective(std::string_view name, std::string_view text) {
    const std::int64_t count = number_behind(text, " count "), type = number_behind(text, " datatype ");
    if (count < 0 || type < 0 || name.size() > 40 || name.find(' ') != std::string_view::npos ||
        text.find(" opCount ", name.size() + 3) != std::string_view::npos)
      return sink_.lose(trace::Loss::kInputDamaged, 1, "lines of collectives that are torn",
                        fmt::format("byte {}", lines_.offset()));
    const Collective key{std::string(name), type, count, number_behind(text, "[nranks=")};
    if (calls_.size() >= kMostKinds && !calls_.contains(key))
      return sink_.lose(trace::Loss::kInputLimit, 1, "kinds of collectives");
    ++calls_[key];
  }

  Result<void> finish() {
    if (calls_.empty()) {
      return Error{ErrorCode::kCorruptInput,
                   known_lines_ == 0
                       ? "line 1: holds no line of NCCL"
                       : fmt::format("line {}: names no collectives: the log has no COLL lines", lines_.number()),
                   "set NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,COLL NCCL_DEBUG_FILE=FILE and record again"};
    }
    for (const auto& [pid, process] : processes_) {
      trace::ProcessRow row{.id = sink_.new_id(), .pid = pid};
      if (process.rank >= 0) row.rank = process.rank;
      sink_.add(row);
      for (const auto& [name, size] : process.communicators)
        sink_.add(trace::CommunicatorRow{.process_id = row.id, .name = sink_.name(name), .size = size});
    }
    for (const auto& [key, calls] : calls_) add(key, calls);
    sink_.set_facts({.tool = version_.empty() ? "NCCL" : "NCCL " + version_});
    sink_.note("nccl",
               "The log of NCCL says what was asked, not how long it took: collectives are totals without times.");
    return {};
  }

  void add(const Collective& key, std::int64_t calls) {
    const bool known = key.type < static_cast<std::int64_t>(kTypes.size());
    const Type type = known ? kTypes[static_cast<std::size_t>(key.type)] : Type{"unknown type", 0};
    trace::SummaryRow row{
        .id = sink_.new_id(), .name = sink_.name("nccl" + key.name), .kind = sink_.name("collective"), .calls = calls};
    if (known)
      row.moved_bytes = static_cast<double>(key.count) * static_cast<double>(type.bytes) * static_cast<double>(calls);
    row.shapes = sink_.name(fmt::format("[{}] {}, {} ranks", key.count, type.name, key.ranks));
    sink_.add(row);
  }

  Sink& sink_;
  Lines lines_;
  std::map<Collective, std::int64_t> calls_;
  std::map<std::int64_t, Process> processes_;
  std::string version_;
  std::int64_t known_lines_ = 0, warnings_ = 0;
};

Result<void> parse(Input& input, Sink& sink) { return Reader(input, sink).read(); }

}  // namespace
}  // namespace nccl_log

extern const Importer kNcclLog;
const Importer kNcclLog{"nccl", "NCCL debug log", Role::kSummary, nccl_log::sniff, nccl_log::parse, false};

}  // namespace llmprof::importers
