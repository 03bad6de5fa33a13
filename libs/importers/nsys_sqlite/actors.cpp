#include "importers/nsys_sqlite/actors.h"

#include <algorithm>

namespace llmprof::importers::nsys {
namespace {

constexpr int kPidShift = 24;
constexpr std::int64_t kIdMask = (1 << kPidShift) - 1;
constexpr std::size_t kMost = UINT16_MAX;
constexpr std::size_t kMostNames = 1 << 20;

}  // namespace

Actors::Index Actors::process(std::optional<std::int64_t> global) {
  if (!global) {
    if (processes_.size() == 1) return process(0);
    return 1;
  }
  const std::int64_t key = *global >> kPidShift;
  if (key == last_process_ && last_process_index_ != 0) return last_process_index_;
  auto [found, is_new] = process_index_.try_emplace(key, Index{0});
  if (is_new) {
    if (processes_.size() > kMost) {
      process_index_.erase(found);
      database_.sink().lose(trace::Loss::kInputLimit, 1, "processes beyond 65535");
      return 0;
    }
    found->second = static_cast<Index>(processes_.size());
    processes_.push_back({database_.sink().new_id(), key & kIdMask, 0, 0, false});
  }
  last_process_ = key;
  return last_process_index_ = found->second;
}

Actors::Index Actors::thread(std::int64_t global, std::int64_t begin_ns, std::int64_t end_ns) {
  Index index = last_thread_index_;
  if (global != last_thread_ || index == 0) {
    auto [found, is_new] = thread_index_.try_emplace(global, Index{0});
    if (is_new && threads_.size() > kMost) {
      thread_index_.erase(found);
      database_.sink().lose(trace::Loss::kInputLimit, 1, "threads beyond 65535");
      return 0;
    }
    if (is_new) {
      found->second = static_cast<Index>(threads_.size());
      threads_.push_back({database_.sink().new_id(), global & kIdMask, process(global), begin_ns});
    }
    last_thread_ = global;
    index = last_thread_index_ = found->second;
  }
  Thread& thread = threads_[index];
  thread.first_ns = std::min(thread.first_ns, begin_ns);
  saw(thread.process, begin_ns, end_ns);
  return index;
}

void Actors::saw(Index index, std::int64_t begin_ns, std::int64_t end_ns) {
  Process& process = processes_[index];
  process.first_ns = process.timed ? std::min(process.first_ns, begin_ns) : begin_ns;
  process.last_ns = process.timed ? std::max(process.last_ns, end_ns) : end_ns;
  process.timed = true;
}

Result<std::map<std::int64_t, trace::Name>> Actors::process_names() {
  std::map<std::int64_t, trace::Name> names;
  LLMPROF_LET(Rows rows, database_.rows("PROCESSES", {"globalPid", "name"}));
  while (rows.next()) {
    const auto global = rows.integer(0);
    if (!global || !process_index_.contains(*global >> kPidShift)) continue;
    if (const auto name = rows.text(1)) names[*global >> kPidShift] = database_.sink().name(*name);
  }
  LLMPROF_TRY(rows.finish());
  return names;
}

// A thread may have several names; that of the highest priority counts.
Result<std::unordered_map<std::int64_t, trace::Name>> Actors::thread_names() {
  std::unordered_map<std::int64_t, trace::Name> names;
  std::unordered_map<std::int64_t, std::int64_t> priorities;
  LLMPROF_LET(Rows rows, database_.rows("ThreadNames", {"nameId", "priority", "globalTid"}));
  while (rows.next()) {
    const auto global = rows.integer(2), name = rows.integer(0);
    const std::int64_t priority = rows.integer_or(1, 0);
    if (!global || !name || names.size() > kMostNames || !thread_index_.contains(*global)) continue;
    auto [known, is_new] = priorities.try_emplace(*global, priority);
    if (!is_new && known->second > priority) continue;
    known->second = priority;
    names[*global] = strings_.name(*name);
  }
  LLMPROF_TRY(rows.finish());
  return names;
}

Result<void> Actors::write(const Host& host) {
  Sink& sink = database_.sink();
  LLMPROF_LET(const auto names_of_processes, process_names());
  LLMPROF_LET(const auto names_of_threads, thread_names());
  for (const auto& [key, index] : process_index_) {
    const Process& process = processes_[index];
    trace::ProcessRow row;
    row.id = process.id;
    row.pid = process.pid;
    if (!host.name.empty()) row.host = sink.name(host.name);
    row.rank = host.rank;
    const auto name = names_of_processes.find(key);
    if (name != names_of_processes.end()) row.executable = name->second;
    if (process_index_.size() == 1 && !host.arguments.empty()) row.arguments = sink.name(host.arguments);
    row.begin_ns = process.first_ns;
    sink.add(row);
  }
  for (const auto& [global, index] : thread_index_) {
    const Thread& thread = threads_[index];
    const auto name = names_of_threads.find(global);
    sink.add(trace::ThreadRow{thread.id, process_id(thread.process), thread.tid,
                              name == names_of_threads.end() ? trace::Name{} : name->second, thread.first_ns,
                              std::nullopt});
  }
  return {};
}

}  // namespace llmprof::importers::nsys
