#include "view/runs.h"

#include "analyze/diff/diff.h"
#include "analyze/summary.h"
#include "base/json.h"
#include "pictures/page_data.h"
#include "record/open_run.h"
#include "report/diff.h"
#include "report/page.h"

namespace llmprof::view {
namespace {

constexpr std::size_t kMostBytes = 32 << 20;  // of the page's data about one run

std::string name_of(const std::string& folder) {
  const std::string whole = folder.substr(0, folder.find_last_not_of('/') + 1);
  std::string name = whole.substr(whole.find_last_of('/') + 1);
  if (name.ends_with(".llmprof")) name.resize(name.size() - std::string_view(".llmprof").size());
  return name;
}

std::vector<std::vector<std::string>> selects_of(const analyze::Diagnosis& diagnosis) {
  std::vector<std::vector<std::string>> selects;
  for (const analyze::Finding& finding : diagnosis.findings) {
    selects.emplace_back();
    for (const analyze::Evidence& evidence : finding.evidence) selects.back().push_back(evidence.rows);
  }
  return selects;
}

}  // namespace

Result<std::unique_ptr<Runs>> Runs::open(const std::vector<std::string>& paths, const base::Progress& progress) {
  std::unique_ptr<Runs> runs(new Runs);
  for (const std::string& path : paths) {
    LLMPROF_LET(trace::Run run, record::open_run(path, progress));
    Entry& entry = runs->entries_.emplace_back();
    entry.folder = run.folder();
    entry.name = name_of(entry.folder);
    entry.run.emplace(std::move(run));
  }
  return runs;
}

Runs::~Runs() {
  stop_ = true;
  if (thread_.joinable()) thread_.join();
}

void Runs::start() {
  thread_ = std::thread([this] { prepare_all(); });
}

bool Runs::note(Entry& entry, const base::ProgressUpdate& update) {
  const std::lock_guard lock(mutex_);
  entry.state = {RunState::Phase::kWorking, std::string(update.what), update.done, update.total, ""};
  return !stop_;
}

Result<std::unique_ptr<PreparedRun>> Runs::prepare(Entry& entry) {
  const base::Progress progress = [&](const base::ProgressUpdate& update) { return note(entry, update); };
  progress({"analysing", 0, 0, ""});
  LLMPROF_LET(analyze::Summary summary, analyze::summarise(*entry.run, {}, progress));
  const report::Page page{.run = entry.name, .info = entry.run->info(), .summary = std::move(summary)};
  LLMPROF_LET(RunIndex index, RunIndex::build(*entry.run, progress));
  progress({"putting the page together", 0, 0, ""});
  LLMPROF_LET(base::Json data, pictures::run_data(*entry.run, page, kMostBytes));
  data["name"] = entry.name;
  if (entries_.size() > 1) {
    auto digest = analyze::digest_of(*entry.run, page.summary);
    auto flame = pictures::flame(*entry.run);
    if (digest && flame) entry.compared = Compared{std::move(*digest), std::move(*flame)};
  }
  return std::unique_ptr<PreparedRun>(
      new PreparedRun{base::to_line(data), selects_of(page.summary.diagnosis), std::move(index)});
}

// The first run with each of the others; one that could not be prepared is left out.
std::string Runs::compare_all() const {
  base::Json diffs = base::Json::array();
  for (std::size_t i = 1; i < entries_.size() && entries_[0].compared; ++i) {
    if (!entries_[i].compared) continue;
    const Compared &before = *entries_[0].compared, &after = *entries_[i].compared;
    base::Json diff = base::Json::object();
    report::to_json(report::DiffPage{.diff = analyze::compare({entries_[0].name, {before.digest}},
                                                              {entries_[i].name, {after.digest}}),
                                     .gates = {}},
                    diff);
    diff["flame"] = pictures::to_json(pictures::flame_diff(before.flame, after.flame));
    diffs.push_back(std::move(diff));
  }
  return base::to_line(diffs);
}

void Runs::prepare_all() {
  for (Entry& entry : entries_) {
    if (stop_) return;
    auto prepared = prepare(entry);
    entry.run.reset();  // the engine's memory
    const std::lock_guard lock(mutex_);
    if (prepared) {
      entry.prepared = std::move(*prepared);
      entry.state = {.phase = RunState::Phase::kReady};
    } else {
      entry.state = {.phase = RunState::Phase::kFailed, .error = prepared.error().message};
    }
  }
  std::string diffs = compare_all();
  const std::lock_guard lock(mutex_);
  diffs_ = std::move(diffs);
  all_done_ = true;
}

RunState Runs::state(std::size_t at) const {
  const std::lock_guard lock(mutex_);
  return entries_[at].state;
}

PreparedRun* Runs::prepared(std::size_t at) const {
  const std::lock_guard lock(mutex_);
  return entries_[at].prepared.get();
}

std::optional<std::string> Runs::diffs() const {
  const std::lock_guard lock(mutex_);
  return all_done_ ? std::optional(diffs_) : std::nullopt;
}

}  // namespace llmprof::view
