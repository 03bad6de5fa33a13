#include "analyze/steps/idle.h"

#include <algorithm>
#include <map>

#include "analyze/questions.h"
#include "analyze/rows_of.h"

namespace llmprof::analyze {

namespace {

StageIdle& find_or_add(std::vector<StageIdle>& out, const std::string& stage, bool warm_up) {
  for (StageIdle& each : out) {
    if (each.stage == stage && each.warm_up == warm_up) return each;
  }
  return out.emplace_back(StageIdle{.stage = stage, .warm_up = warm_up});
}

Result<void> add_places(const trace::Run& run, std::vector<StageIdle>& out) {
  LLMPROF_LET(const trace::ResultTable table, ask(run, "sql/idle_places"));
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    const RowView row{table, i};
    StageIdle& idle = find_or_add(out, row.text("stage"), row.integer("warm_up") != 0);
    idle.gap_ns += row.integer("gap_ns"), idle.between_ns += row.integer("between_ns");
    idle.places.push_back({row.text("place"), row.integer("gap_ns") + row.integer("between_ns")});
  }
  return {};
}

Result<std::map<std::int64_t, HostWork>> works_of_stacks(const trace::Run& run) {
  LLMPROF_LET(const trace::ResultTable table, ask(run, "sql/idle_stacks"));
  std::map<std::int64_t, std::vector<StackFrame>> stacks;
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    const RowView row{table, i};
    stacks[row.integer("stack_id")].push_back({row.text("kind"), row.text("function"), row.text("file")});
  }
  std::map<std::int64_t, HostWork> out;
  for (const auto& [id, frames] : stacks) out[id] = work_of(frames);
  return out;
}

struct Tally {  // of one kind of work in one stage
  std::int64_t samples = 0, cpu_ns = 0;
  std::map<std::string, std::int64_t> whats, wheres;  // CPU time
};

std::string most(const std::map<std::string, std::int64_t>& times) {
  const auto by_time = [](const auto& a, const auto& b) { return a.second < b.second; };
  return times.empty() ? "" : std::ranges::max_element(times, by_time)->first;
}

Result<void> add_works(const trace::Run& run, std::vector<StageIdle>& out) {
  LLMPROF_LET(const auto works, works_of_stacks(run));
  LLMPROF_LET(const trace::ResultTable table, ask(run, "sql/idle_samples"));
  std::map<std::pair<std::string, bool>, std::map<Work, Tally>> tallies;
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    const RowView row{table, i};
    const auto found = works.find(row.integer("stack_id"));
    const HostWork work = found == works.end() ? HostWork{} : found->second;
    Tally& tally = tallies[{row.text("stage"), row.integer("warm_up") != 0}][work.work];
    tally.samples += row.integer("samples"), tally.cpu_ns += row.integer("cpu_ns");
    tally.whats[work.what] += row.integer("cpu_ns"), tally.wheres[work.where] += row.integer("cpu_ns");
  }
  for (const auto& [key, kinds] : tallies) {
    StageIdle& idle = find_or_add(out, key.first, key.second);
    for (const auto& [work, tally] : kinds) {
      idle.samples += tally.samples;
      idle.works.push_back({work, most(tally.whats), most(tally.wheres), tally.samples, tally.cpu_ns});
    }
    std::ranges::stable_sort(idle.works, std::greater{}, &IdleWork::cpu_ns);
  }
  return {};
}

}  // namespace

std::int64_t StageIdle::cpu_ns() const {
  std::int64_t out = 0;
  for (const IdleWork& each : works) out += each.cpu_ns;
  return out;
}

std::int64_t StageIdle::cpu_ns(Work work) const {
  const auto found = std::ranges::find(works, work, &IdleWork::work);
  return found == works.end() ? 0 : found->cpu_ns;
}

Result<std::vector<StageIdle>> idle_time(const trace::Run& run) {
  std::vector<StageIdle> out;
  LLMPROF_TRY(add_places(run, out));
  LLMPROF_TRY(add_works(run, out));
  return out;
}

const StageIdle* find_idle(const std::vector<StageIdle>& idle, std::string_view stage, bool warm_up) {
  const auto found =
      std::ranges::find_if(idle, [&](const StageIdle& each) { return each.stage == stage && each.warm_up == warm_up; });
  return found == idle.end() ? nullptr : &*found;
}

}  // namespace llmprof::analyze
