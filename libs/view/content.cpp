#include "view/content.h"

#include "base/json.h"
#include "base/version.h"
#include "pictures/page_data.h"

namespace llmprof::view {
namespace {

base::Json state_json(const RunState& state) {
  constexpr const char* kPhases[] = {"waiting", "working", "ready", "failed"};
  return {{"state", kPhases[static_cast<std::size_t>(state.phase)]},
          {"what", base::text_or_null(state.what)},
          {"done", state.done},
          {"total", state.total},
          {"error", base::text_or_null(state.error)}};
}

}  // namespace

Response RunContent::list() const {
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

// Asked again until it is ready.
Response RunContent::unready(std::size_t at) const {
  const RunState state = runs_.state(at);
  if (state.phase == RunState::Phase::kFailed) return refusal(500, state.error);
  return {.status = 202, .body = base::to_line(state_json(state)), .retry = true};
}

Response RunContent::run(std::size_t at) const {
  const PreparedRun* prepared = runs_.prepared(at);
  return prepared == nullptr ? unready(at) : Response{.body = prepared->data};
}

Response RunContent::timeline(std::size_t at, const pictures::TimelineRequest& request) const {
  PreparedRun* prepared = runs_.prepared(at);
  if (prepared == nullptr) return unready(at);
  if (!request.stage.empty() && !prepared->index.has_stage(request.stage))
    return refusal(404, "the run has no such stage");
  return {.body = base::to_line(pictures::to_json(prepared->index.timeline(request)))};
}

Response RunContent::diffs() const {
  const auto diffs = runs_.diffs();
  return diffs ? Response{.body = *diffs} : Response{.status = 202, .body = R"({"state":"working"})", .retry = true};
}

std::optional<Response> RunContent::rows(std::size_t at, std::size_t finding, std::size_t evidence,
                                         std::uint64_t ticket) const {
  const PreparedRun* prepared = runs_.prepared(at);
  if (prepared == nullptr) return unready(at);
  if (finding >= prepared->evidence.size() || evidence >= prepared->evidence[finding].size() ||
      prepared->evidence[finding][evidence].empty())
    return refusal(404, "no rows stand behind that");
  return query(at, prepared->evidence[finding][evidence], ticket);
}

std::optional<Response> RunContent::query(std::size_t at, const std::string& sql, std::uint64_t ticket) const {
  if (queries_.add(ticket, runs_.folder(at), sql)) return std::nullopt;
  return refusal(503, "too many queries wait");
}

}  // namespace llmprof::view
