#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "analyze/questions.h"
#include "analyze/rows_of.h"
#include "analyze/sections/host_memory.h"
#include "analyze/sections/sections.h"
#include "analyze/steps/sampled_loops.h"

namespace llmprof::analyze {

namespace {

constexpr std::size_t kShownPoints = 120;

double share_of(std::int64_t part, std::int64_t whole) {
  return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : 0;
}

std::string labelled(const std::string& name, std::int64_t id) {
  const std::string file = name.substr(name.rfind('/') + 1);
  return fmt::format("{} {}", file.empty() ? "(unknown)" : file, id);
}

Result<void> fill_processes(const trace::Run& run, Host& host) {
  LLMPROF_LET(host.processes, ask_rows<ProcessUsage>(run, "host_processes"));
  for (ProcessUsage& process : host.processes) {
    process.label = labelled(process.name, process.pid);
    process.cpu_ns = process.user_ns + process.system_ns;
    if (process.cpu_ns > 0) process.system_share = share_of(process.system_ns, process.cpu_ns);
    process.core_share = share_of(process.cpu_ns, process.wall_ns);
    if (process.voluntary_switches && process.involuntary_switches)
      process.switches = *process.voluntary_switches + *process.involuntary_switches;
  }
  return {};
}

Result<std::vector<MemoryReading>> read_readings(const trace::Run& run) {
  LLMPROF_LET(const trace::Columns columns, ask_columns(run, "host_readings"));
  std::vector<MemoryReading> readings(columns.rows());
  for (std::size_t i = 0; i < readings.size(); ++i) {
    readings[i] = {columns.values[0][i], columns.values[1][i], columns.values[2][i], columns.values[3][i]};
  }
  return readings;
}

Result<Periods> read_periods(const trace::Run& run, Host& host) {
  LLMPROF_LET(const trace::ResultTable table, ask(run, "host_periods"));
  Periods periods;
  std::vector<std::int64_t> sorted;
  for (const auto& row : table.rows) {
    periods[row[0].as_int()] = row[1].as_int();
    sorted.push_back(row[1].as_int());
  }
  std::sort(sorted.begin(), sorted.end());
  const std::int64_t usual = sorted.empty() ? 0 : sorted[sorted.size() / 2];
  if (usual > 0) host.readings_per_s = 1e9 / static_cast<double>(usual);
  return periods;
}

Result<void> fill_memory(const trace::Run& run, const std::vector<MemoryReading>& readings, const Periods& periods,
                         Host& host) {
  const std::vector<MemoryPoint> all = memory_of_all(readings, periods);
  if (all.empty()) return {};
  host.memory = thinned(all, kShownPoints);
  const auto highest = std::max_element(
      all.begin(), all.end(), [](const MemoryPoint& a, const MemoryPoint& b) { return a.rss_bytes < b.rss_bytes; });
  const auto nearly = std::find_if(all.begin(), all.end(), [&](const MemoryPoint& point) {
    return point.rss_bytes >= highest->rss_bytes - highest->rss_bytes / 20;
  });
  host.peak = MemoryPeak{{highest->ts_ns, highest->rss_bytes, {}}, {nearly->ts_ns, nearly->rss_bytes, {}}};
  LLMPROF_LET(host.peak->highest.open_ranges, open_at(run, highest->ts_ns));
  LLMPROF_LET(host.peak->nearly.open_ranges, open_at(run, nearly->ts_ns));
  return {};
}

Result<void> fill_gains(const trace::Run& run, const std::vector<MemoryReading>& readings, const Periods& periods,
                        Host& host) {
  if (readings.empty()) return {};
  LLMPROF_LET(const trace::Columns columns, ask_columns(run, "host_ranges"));
  std::vector<MemoryRange> ranges(columns.rows());
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    const auto& v = columns.values;
    ranges[i] = {v[0][i], v[1][i], v[2][i], v[3][i], v[5][i], v[4][i]};
  }
  std::map<std::pair<std::int64_t, std::int64_t>, MemoryGain> groups;
  for (const GainOfRange& gain : gains_of(ranges, readings, periods)) {
    const MemoryRange& range = ranges[gain.range];
    MemoryGain& group = groups[{range.name, range.stage}];
    group.largest_bytes = group.ranges == 0 ? gain.self_bytes : std::max(group.largest_bytes, gain.self_bytes);
    group.gained_bytes += gain.self_bytes;
    ++group.ranges;
  }
  for (auto& [key, group] : groups) {
    if (group.gained_bytes == 0 && group.largest_bytes == 0) continue;
    group.range = columns.names[static_cast<std::size_t>(key.first)];
    group.stage = columns.names[static_cast<std::size_t>(key.second)];
    host.gains.push_back(std::move(group));
  }
  std::sort(host.gains.begin(), host.gains.end(), [](const MemoryGain& a, const MemoryGain& b) {
    return std::tie(b.gained_bytes, a.range, a.stage) < std::tie(a.gained_bytes, b.range, b.stage);
  });
  return {};
}

}  // namespace

Result<std::vector<OpenRanges>> open_at(const trace::Run& run, std::int64_t ts_ns) {
  LLMPROF_LET(
      const trace::ResultTable table,
      run.query(fmt::format("SELECT p.pid, o.thread_id, o.name FROM ({} AND begin_ns <= {} AND end_ns >= {}) AS "
                            "o JOIN process AS p ON p.id = o.process_id ORDER BY p.pid, o.thread_id, "
                            "o.begin_ns, o.end_ns DESC",
                            sql_of("host_open_ranges"), ts_ns, ts_ns)));
  std::map<std::pair<std::int64_t, std::int64_t>, std::vector<std::string>> by_thread;
  for (const auto& row : table.rows) by_thread[{row[0].as_int(), row[1].as_int()}].push_back(row[2].text);
  std::vector<OpenRanges> open;
  for (auto& [key, names] : by_thread) {
    if (open.empty() || open.back().pid != key.first) open.push_back({key.first, {}});
    if (names.size() > open.back().names.size()) open.back().names = std::move(names);
  }
  return open;
}

namespace {

Result<void> fill_waits(const trace::Run& run, Host& host) {
  LLMPROF_LET(host.waits, ask_rows<ProcessWait>(run, "host_waits"));
  for (ProcessWait& wait : host.waits) {
    wait.label = labelled(wait.name, wait.pid);
    wait.share = share_of(wait.time_ns, wait.thread_ns);
    if (wait.main_thread_ns > 0) wait.main_share = share_of(wait.main_ns, wait.main_thread_ns);
  }
  if (host.waits.empty()) return {};
  LLMPROF_LET(host.threads, ask_rows<ThreadWait>(run, "host_threads"));
  for (ThreadWait& thread : host.threads) {
    thread.label = labelled(thread.thread, thread.tid);
    thread.process = labelled(thread.name, thread.pid);
    thread.cpu_share = share_of(thread.cpu_ns, thread.time_ns);
    thread.queue_share = share_of(thread.queue_ns, thread.time_ns);
    thread.blocked_share = share_of(thread.blocked_ns, thread.time_ns);
  }
  LLMPROF_LET(host.cpu_limit, ask_row<CpuLimit>(run, "host_cpu_limit"));
  if (host.cpu_limit.periods > 0)
    host.cpu_limit.throttled_share = share_of(host.cpu_limit.throttled, host.cpu_limit.periods);
  return {};
}

}  // namespace

Result<void> fill_host(const trace::Run& run, Host& host) {
  LLMPROF_TRY(fill_processes(run, host));
  LLMPROF_TRY(fill_waits(run, host));
  LLMPROF_LET(const Periods periods, read_periods(run, host));
  LLMPROF_LET(const std::vector<MemoryReading> readings, read_readings(run));
  LLMPROF_TRY(fill_memory(run, readings, periods, host));
  return fill_gains(run, readings, periods, host);
}

namespace {

Result<StackCoverage> read_coverage(const trace::Run& run) {
  LLMPROF_LET(StackCoverage stacks, ask_row<StackCoverage>(run, "function_coverage"));
  if (stacks.samples > 0)
    stacks.truncated_share = static_cast<double>(stacks.truncated) / static_cast<double>(stacks.samples);
  return stacks;
}

}  // namespace

Result<void> fill_functions(const trace::Run& run, Host& host) {
  LLMPROF_LET(host.stacks, read_coverage(run));
  if (host.stacks.samples == 0) return {};
  LLMPROF_LET(host.functions, ask_rows<Function>(run, "functions"));
  for (Function& function : host.functions) {
    if (function.sampled_ns > 0)
      function.self_share = static_cast<double>(function.self_ns) / static_cast<double>(function.sampled_ns);
  }
  const auto all_ns = static_cast<double>(host.stacks.sampled_ns);
  LLMPROF_LET(host.top_functions, ask_rows<TopFunction>(run, "top_functions"));
  LLMPROF_LET(host.python_functions, ask_rows<PythonFunction>(run, "python_functions"));
  const auto add_shares = [&](auto& functions) {
    for (auto& function : functions) {
      function.self_share = share_of(function.self_ns, host.stacks.sampled_ns);
      function.total_share = share_of(function.total_ns, host.stacks.sampled_ns);
    }
  };
  add_shares(host.top_functions);
  add_shares(host.python_functions);
  LLMPROF_TRY(fill_sampled_stages(run, host));
  for (SampledStage& stage : host.sampled_stages) {
    if (all_ns > 0) stage.share = static_cast<double>(stage.time_ns) / all_ns;
    if (stage.passes) stage.pass_ns = stage.time_ns / std::max<std::int64_t>(1, *stage.passes);
    for (SampledPart& part : stage.parts) part.share = all_ns > 0 ? static_cast<double>(part.time_ns) / all_ns : 0;
  }
  return {};
}

}  // namespace llmprof::analyze
