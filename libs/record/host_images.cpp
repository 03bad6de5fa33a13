#include <algorithm>
#include <utility>

#include "record/host_ingest.h"

namespace llmprof::record {

HostImages::HostImages(RunRows& rows, HostFacts facts)
    : rows_(rows), facts_(std::move(facts)), names_(rows.writer.strings()) {}

void HostImages::receive(wire::RecordKind kind, std::uint32_t, std::span<const wire::Record> records) {
  for (const wire::Record& record : records) {
    if (kind == wire::RecordKind::kProcess && facts_.window.holds(record.process.ts_ns)) take(record.process);
    if (kind == wire::RecordKind::kThread && record.thread.name != 0) {
      thread_names_[static_cast<std::int64_t>(record.thread.tid)] = record.thread.name;
    }
  }
}

void HostImages::take(const wire::ProcessRecord& record) {
  std::vector<Seen>& seen = seen_[static_cast<std::int64_t>(record.pid)];
  const auto ts_ns = static_cast<std::int64_t>(record.ts_ns);
  if (!seen.empty() && seen.back().end_ns == INT64_MAX) {
    seen.back().end_ns = ts_ns;
    seen.back().ended = true;
  }
  if (record.ended == 0) seen.push_back({.record = record});
}

// The same program (or one that ended before it could be asked), and the log began before another was seen in its
// place.
HostImages::Seen* HostImages::match(const LogImage& image) {
  const auto found = seen_.find(image.pid);
  if (found == seen_.end()) return nullptr;
  for (Seen& seen : found->second) {
    const bool same = static_cast<std::int64_t>(seen.record.start_ticks) == image.start_ticks &&
                      (seen.record.executable == 0 || names_.name(seen.record.executable).id == image.executable.id);
    if (same && !seen.joined && image.begin_ns < seen.end_ns) return &seen;
  }
  return nullptr;
}

// A log begins with the first event and ends with the exit handlers; the process was there before and after.
void HostImages::finish() {
  for (const LogImage& image : rows_.images) {
    Since entry{image.begin_ns, &image, image.process_id};
    if (Seen* seen = match(image)) {
      seen->joined = true;
      entry.begin_ns = std::min(entry.begin_ns, static_cast<std::int64_t>(seen->record.ts_ns));
      trace::ProcessRow& row = row_of(image.process_id);
      row.begin_ns = std::min(row.begin_ns, entry.begin_ns);
      if (seen->ended) row.end_ns = std::max(row.end_ns.value_or(row.begin_ns), seen->end_ns);
    }
    by_pid_[image.pid].push_back(entry);
  }
  for (const auto& [pid, images] : seen_) {
    for (const Seen& seen : images) {
      if (seen.joined) continue;
      by_pid_[pid].push_back(
          {static_cast<std::int64_t>(seen.record.ts_ns), nullptr, write_process(seen, &seen == &images.back())});
    }
  }
  for (auto& [pid, entries] : by_pid_) {
    std::stable_sort(entries.begin(), entries.end(),
                     [](const Since& a, const Since& b) { return a.begin_ns < b.begin_ns; });
  }
}

trace::ProcessRow& HostImages::row_of(trace::Id process_id) {
  return *std::ranges::find(rows_.process_rows, process_id, &trace::ProcessRow::id);
}

trace::Id HostImages::write_process(const Seen& seen, bool last) {
  const bool root = static_cast<std::int64_t>(seen.record.pid) == facts_.root_pid;
  trace::ProcessRow row;
  row.id = rows_.next_id++;
  row.pid = static_cast<std::int64_t>(seen.record.pid);
  if (seen.record.parent_pid != 0) row.parent_pid = static_cast<std::int64_t>(seen.record.parent_pid);
  row.host = names_.name(seen.record.host);
  row.executable = names_.name(seen.record.executable);
  if (seen.record.arguments != 0) {
    row.arguments = rows_.writer.strings().intern(command_line(names_.text(seen.record.arguments)));
  }
  if (root && seen.record.executable == 0 && !facts_.root_executable.empty()) {  // it ended before it could be asked
    row.executable = rows_.writer.strings().intern(facts_.root_executable);
    row.arguments = rows_.writer.strings().intern(facts_.root_arguments);
  }
  row.begin_ns = static_cast<std::int64_t>(seen.record.ts_ns);
  if (seen.ended) row.end_ns = std::max(seen.end_ns, row.begin_ns);
  if (root && last) row.exit_status = facts_.root_exit_status;
  row.injected = root && facts_.root_injectable;  // it had no event to write a log for
  rows_.process_rows.push_back(row);
  ++rows_.processes;
  return row.id;
}

// A process of which only samples or readings are left gets a row with no more than its pid.
HostImages::Since& HostImages::since(std::int64_t pid, std::int64_t ts_ns) {
  std::vector<Since>& entries = by_pid_[pid];
  if (entries.empty()) {
    entries.push_back({ts_ns, nullptr, rows_.next_id++});
    rows_.process_rows.push_back(trace::ProcessRow{.id = entries.back().process_id, .pid = pid, .begin_ns = ts_ns});
    ++rows_.processes;
  }
  const auto after = std::upper_bound(entries.begin(), entries.end(), ts_ns,
                                      [](std::int64_t time, const Since& entry) { return time < entry.begin_ns; });
  return after == entries.begin() ? entries.front() : *(after - 1);
}

trace::Id HostImages::process_at(std::int64_t pid, std::int64_t ts_ns) { return since(pid, ts_ns).process_id; }

trace::Id HostImages::thread_at(std::int64_t pid, std::int64_t tid, std::int64_t ts_ns) {
  const Since& image = since(pid, ts_ns);
  if (image.log != nullptr) {
    const auto known = image.log->threads.find(tid);
    if (known != image.log->threads.end()) return known->second;
  }
  const auto [found, first] = threads_.try_emplace({image.process_id, tid}, Sampled{0, ts_ns});
  if (first) found->second.id = rows_.next_id++;
  found->second.begin_ns = std::min(found->second.begin_ns, ts_ns);
  return found->second.id;
}

void HostImages::write_threads() {
  for (const auto& [key, thread] : threads_) {
    const auto name = thread_names_.find(key.second);
    trace::ThreadRow row;
    row.id = thread.id;
    row.process_id = key.first;
    row.tid = key.second;
    if (name != thread_names_.end()) row.name = names_.name(name->second);
    row.begin_ns = thread.begin_ns;
    rows_.writer.add(row);
    ++rows_.threads;
  }
}

}  // namespace llmprof::record
