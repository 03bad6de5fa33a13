// What the simulation of `predict` makes of the requests that a server had, each when the server took it, with the times
// that its steps took: a line of JSON for every step, then one for every request. For serve_test.py.
//   replay_steps STEPS CONTENTS ENGINE KEY=VALUE…
// STEPS: the server's file. CONTENTS: JSON, the content of full blocks of each request's prompt, by its id.

#include <cstdio>
#include <sstream>

#include "base/file.h"
#include "base/json.h"
#include "serving/simulate.h"

namespace llmprof {
namespace {

using base::Json;

// A step of the server takes host time from the end of the step before, and device time.
class MeasuredTimes final : public serving::StepCost {
 public:
  explicit MeasuredTimes(const std::vector<Json>& steps) : steps_(steps), before_(steps.front()["scheduled_ns"]) {}
  serving::StepTime of(const serving::Batch& /*batch*/) override {
    if (next_ == steps_.size()) return {.device_ns = 1, .host_ns = 1};  // more steps than the server had
    const Json& step = steps_[next_++];
    const std::int64_t begin = step["begin_ns"], end = step["end_ns"], before = before_;
    before_ = end;
    return {.device_ns = static_cast<double>(end - begin), .host_ns = static_cast<double>(begin - before)};
  }

 private:
  const std::vector<Json>& steps_;
  std::size_t next_ = 0;
  std::int64_t before_;
};

serving::Workload workload_of(const std::vector<Json>& steps, const Json& contents, std::int64_t block_size,
                              std::vector<std::string>& ids) {
  serving::Workload workload;
  workload.content_tokens = block_size;
  const std::int64_t start = steps.front()["scheduled_ns"];
  std::int64_t before = start;
  for (const Json& step : steps) {
    for (const Json& arrived : step["arrived"]) {
      ids.push_back(arrived[0]);
      serving::Request& request = workload.requests.emplace_back();
      request.arrival_ns = static_cast<double>(before - start);
      request.prompt_tokens = arrived[1], request.output_tokens = arrived[2], request.priority = arrived[3];
      request.id_begin = workload.content_ids.size();
      for (const Json& content : contents.at(ids.back())) workload.content_ids.push_back(content);
      request.id_count = static_cast<std::uint32_t>(workload.content_ids.size() - request.id_begin);
    }
    before = step["end_ns"];
  }
  return workload;
}

Json line_of(const serving::LaunchedStep& step) {
  Json chunks = Json::array();
  for (const serving::Chunk& chunk : step.batch.chunks) chunks.push_back({chunk.tokens, chunk.computed});
  return {{"chunks", chunks}, {"contexts", step.batch.contexts}, {"sampled", step.batch.sampled}};
}

Result<void> replay(int count, char** words) {
  LLMPROF_LET(const std::string text, base::read_file(words[1], 64 << 20));
  LLMPROF_LET(const std::string contents_text, base::read_file(words[2], 64 << 20));
  LLMPROF_LET(const Json contents, base::parse_json(contents_text, words[2]));
  LLMPROF_LET(serving::EngineRules rules, serving::engine_rules(words[3], 0));
  for (int i = 4; i < count; ++i) LLMPROF_TRY(serving::set_rule(rules, words[i]));
  std::vector<Json> steps;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    LLMPROF_LET(Json step, base::parse_json(line, words[1]));
    steps.push_back(std::move(step));
  }
  std::vector<std::string> ids;
  const serving::Workload workload = workload_of(steps, contents, rules.block_size, ids);
  MeasuredTimes times(steps);
  std::vector<Json> made;
  serving::SimulateOptions options;
  options.on_step = [&](const serving::LaunchedStep& step) { made.push_back(line_of(step)); };
  LLMPROF_LET(const serving::Simulation simulated, serving::simulate(rules, workload, times, options));
  const auto start = static_cast<double>(steps.front()["scheduled_ns"].get<std::int64_t>());
  for (std::size_t i = 0; i < made.size(); ++i) {
    const serving::StepRecord& step = simulated.steps[i];
    made[i].update({{"begin_ns", static_cast<std::int64_t>(step.begin_ns + start)},
                    {"blocks_used", step.blocks_used},
                    {"running", step.running},
                    {"waiting", step.waiting},
                    {"preempted", step.preempted}});
    std::puts(base::to_line(made[i]).c_str());
  }
  for (std::size_t i = 0; i < ids.size(); ++i)
    std::puts(base::to_line(Json{{"id", ids[i]}, {"cached", simulated.requests[i].cached_tokens}}).c_str());
  return {};
}

}  // namespace
}  // namespace llmprof

int main(int count, char** words) {
  if (count < 4) return 2;
  const auto replayed = llmprof::replay(count, words);
  if (!replayed) std::fprintf(stderr, "%s\n", replayed.error().message.c_str());
  return replayed ? 0 : 1;
}
