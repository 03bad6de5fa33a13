// llmprof control SOCKET COMMAND: starts and stops a recording that was begun with `record --control SOCKET`.

#include <fmt/format.h>

#include "base/human.h"
#include "base/json.h"
#include "record/control/control.h"
#include "verb.h"

namespace llmprof::app {
namespace control_verb {
namespace {

constexpr Option kOptions[] = {{"--json", "", "", "", "", "Print the answer as one line of JSON."}};
constexpr Positional kPositionals[] = {{"SOCKET"}, {"COMMAND"}};

std::string sentence(const base::Json& answer) {
  if (answer.contains("run")) return fmt::format("dumped to {}", answer.value("run", ""));
  const auto ns = [&](const char* key) { return base::human_ns(answer.value(key, 0.0) * 1e9); };
  return fmt::format("{}; {} of {} recorded, {} of logs", answer.value("recording", false) ? "recording" : "stopped",
                     ns("recorded_seconds"), ns("elapsed_seconds"), base::human_bytes(answer.value("log_bytes", 0.0)));
}

Result<int> run(const Arguments& arguments) {
  LLMPROF_LET(const std::string line, record::ask_control(arguments.positionals[0], arguments.positionals[1]));
  const base::Json answer = base::Json::parse(line, nullptr, false);
  if (!answer.is_object()) return Error{ErrorCode::kIo, arguments.positionals[0] + ": no recording answers there", ""};
  base::Json json = json_head("llmprof.control");
  json.update(answer);
  if (arguments.on("--json")) print(base::to_line(json) + "\n");
  if (!answer.value("ok", false)) return Error{ErrorCode::kUsage, answer.value("why", "refused"), ""};
  if (!arguments.on("--json")) print(sentence(answer) + "\n");
  return 0;
}

}  // namespace
}  // namespace control_verb

extern const Verb kControl;
const Verb kControl{"control",
                    "start and stop a recording while it runs",
                    control_verb::kOptions,
                    control_verb::kPositionals,
                    false,
                    control_verb::run};

}  // namespace llmprof::app
