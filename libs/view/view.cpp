#include "view/view.h"

#include <fmt/format.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "analyze/diff/diff.h"
#include "analyze/diff/digest.h"
#include "analyze/summary.h"
#include "base/asset.h"
#include "base/json.h"
#include "base/version.h"
#include "pictures/flame.h"
#include "pictures/page_data.h"
#include "pictures/requests.h"
#include "record/open_run.h"
#include "report/diff.h"
#include "report/page.h"
#include "trace/run.h"
#include "view/guard.h"
#include "view/query.h"
#include "view/routes.h"
#include "view/run_index.h"
#include "view/server.h"

namespace llmprof::web {
std::span<const base::Asset> assets();  // of libs/pictures
}

namespace llmprof::view {
namespace {

// A run with all that requests ask for. Used by one thread at a time.
struct PreparedRun {
  std::string data;                                // RunData of web/src/data.ts as text
  std::vector<std::vector<std::string>> evidence;  // [finding][evidence]: a SELECT, "" none
  RunIndex index;
  pictures::RequestPicture requests;
};

struct RunState {
  enum class Phase : std::uint8_t { kWaiting, kWorking, kReady, kFailed };
  Phase phase = Phase::kWaiting;
  std::string what;            // is being done
  double done = 0, total = 0;  // of it; total 0: unknown
  std::string error;           // of kFailed
};

// What a comparison needs of a run.
struct Compared {
  analyze::Digest digest;
  pictures::Flame flame;
};

// The runs that are shown. They are opened at start and prepared one after the other by a thread of their own, so that
// the page can say how far that is; what is prepared never changes.
class Runs {
 public:
  static Result<std::unique_ptr<Runs>> open(const std::vector<std::string>& paths, const base::Progress& progress);
  ~Runs();  // asks the thread to stop, and waits for it

  void start();  // prepares them
  std::size_t size() const { return entries_.size(); }
  const std::string& name(std::size_t at) const { return entries_[at].name; }
  const std::string& folder(std::size_t at) const { return entries_[at].folder; }
  RunState state(std::size_t at) const;
  PreparedRun* prepared(std::size_t at) const;  // nullptr: not ready
  std::optional<std::string> diffs() const;     // JSON, once all runs are prepared

 private:
  struct Entry {
    std::string name, folder;
    std::optional<trace::Run> run;  // until it is prepared
    RunState state;
    std::unique_ptr<PreparedRun> prepared;
    std::optional<Compared> compared;
  };
  Runs() = default;
  void prepare_all();
  std::string compare_all() const;
  Result<std::unique_ptr<PreparedRun>> prepare(Entry& entry);
  bool note(Entry& entry, const base::ProgressUpdate& update);

  std::vector<Entry> entries_;
  mutable std::mutex mutex_;  // of state and prepared
  std::string diffs_;
  bool all_done_ = false;
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

constexpr std::size_t kMostBytes = 32 << 20;  // of the page's data about one run
constexpr pictures::RequestLimits kMostRequests = {.requests = 2000, .parts = 60000, .member_rows = 0};  // in a window

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
  LLMPROF_LET(auto requests, pictures::RequestPicture::open(*entry.run, page.summary.requests));
  data["name"] = entry.name;
  if (entries_.size() > 1) {
    auto digest = analyze::digest_of(*entry.run, page.summary);
    auto flame = pictures::flame(*entry.run);
    if (digest && flame) entry.compared = Compared{std::move(*digest), std::move(*flame)};
  }
  return std::unique_ptr<PreparedRun>(
      new PreparedRun{base::to_line(data), selects_of(page.summary.diagnosis), std::move(index), std::move(requests)});
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

base::Json state_json(const RunState& state) {
  constexpr const char* kPhases[] = {"waiting", "working", "ready", "failed"};
  return {{"state", kPhases[static_cast<std::size_t>(state.phase)]},
          {"what", base::text_or_null(state.what)},
          {"done", state.done},
          {"total", state.total},
          {"error", base::text_or_null(state.error)}};
}

// The runs as answers.
class RunContent : public Content {
 public:
  RunContent(const Runs& runs, QueryQueue& queries, bool allow_sql)
      : runs_(runs), queries_(queries), allow_sql_(allow_sql) {}

  std::size_t runs() const override { return runs_.size(); }

  Response list() const override {
    base::Json out{{"made_by", std::string("llmprof ") + std::string(base::version())},
                   {"allow_sql", allow_sql_},
                   {"runs", base::Json::array()}};
    for (std::size_t i = 0; i < runs_.size(); ++i) {
      base::Json entry = state_json(runs_.state(i));
      entry["name"] = runs_.name(i);
      out["runs"].push_back(std::move(entry));
    }
    return {.body = base::to_line(out)};
  }

  Response run(std::size_t at) const override {
    const PreparedRun* prepared = runs_.prepared(at);
    return prepared == nullptr ? unready(at) : Response{.body = prepared->data};
  }

  Response timeline(std::size_t at, const pictures::TimelineRequest& request) const override {
    PreparedRun* prepared = runs_.prepared(at);
    if (prepared == nullptr) return unready(at);
    if (!request.stage.empty() && !prepared->index.has_stage(request.stage))
      return refusal(404, "the run has no such stage");
    return {.body = base::to_line(pictures::to_json(prepared->index.timeline(request)))};
  }

  Response requests(std::size_t at, std::optional<pictures::Window> window, int width) const override {
    const PreparedRun* prepared = runs_.prepared(at);
    if (prepared == nullptr) return unready(at);
    if (prepared->requests.empty()) return refusal(404, "the run has no requests");
    return {.body = base::to_line(
                prepared->requests.window(window.value_or(prepared->requests.span()), width, kMostRequests))};
  }

  std::optional<Response> members(std::size_t at, bool of_step, std::int64_t id, std::uint64_t ticket) const override {
    const PreparedRun* prepared = runs_.prepared(at);
    if (prepared == nullptr) return unready(at);
    return query(at,
                 pictures::members_sql(of_step ? "step_id" : "request_id", std::to_string(id),
                                       prepared->requests.span().begin_ns),
                 ticket);
  }

  Response diffs() const override {
    const auto diffs = runs_.diffs();
    return diffs ? Response{.body = *diffs} : Response{.status = 202, .body = R"({"state":"working"})", .retry = true};
  }

  std::optional<Response> rows(std::size_t at, std::size_t finding, std::size_t evidence,
                               std::uint64_t ticket) const override {
    const PreparedRun* prepared = runs_.prepared(at);
    if (prepared == nullptr) return unready(at);
    if (finding >= prepared->evidence.size() || evidence >= prepared->evidence[finding].size() ||
        prepared->evidence[finding][evidence].empty())
      return refusal(404, "no rows stand behind that");
    return query(at, prepared->evidence[finding][evidence], ticket);
  }

  std::optional<Response> query(std::size_t at, const std::string& sql, std::uint64_t ticket) const override {
    if (queries_.add(ticket, runs_.folder(at), sql)) return std::nullopt;
    return refusal(503, "too many queries wait");
  }

 private:
  // The page asks again until the run is ready.
  Response unready(std::size_t at) const {
    const RunState state = runs_.state(at);
    if (state.phase == RunState::Phase::kFailed) return refusal(500, state.error);
    return {.status = 202, .body = base::to_line(state_json(state)), .retry = true};
  }

  const Runs& runs_;
  QueryQueue& queries_;
  bool allow_sql_;
};

}  // namespace

Result<void> serve(const Settings& settings, const std::function<void(const Ready&)>& ready,
                   const std::atomic<bool>& stop) {
  LLMPROF_LET(QueryProcess process, QueryProcess::start());  // first: nothing is open yet, and no thread runs
  LLMPROF_LET(Listeners listeners, listen_on(settings.listen, settings.port, settings.understood));
  LLMPROF_LET(const std::unique_ptr<Runs> runs,
              Runs::open(settings.runs, [&](const base::ProgressUpdate&) { return !stop.load(); }));
  Site site{.port = listeners.port, .address = listeners.address, .token = {}, .session = {}};
  LLMPROF_LET(site.token, make_secret());
  LLMPROF_LET(site.session, make_secret());
  LLMPROF_LET(Server server, Server::create(std::move(listeners), site));
  QueryQueue queries(std::move(process),
                     [&](std::uint64_t ticket, Response response) { server.answer(ticket, std::move(response)); });
  const RunContent content(*runs, queries, settings.allow_sql);
  const Routes routes{server.site(), content, web::assets(), settings.allow_sql};
  runs->start();
  ready(
      {fmt::format("http://{}:{}/#token={}", site.address.empty() ? "127.0.0.1" : site.address, site.port, site.token),
       site.port});
  return server.run([&](const Request& request, Server::Ticket ticket) { return route(routes, request, ticket); }, stop,
                    std::chrono::seconds(settings.idle_seconds));
}

}  // namespace llmprof::view
