#include "advise/advise.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "advise/makers.h"
#include "base/json.h"

namespace llmprof::advise {

Step Context::run_step(std::string why, std::vector<std::string> words, std::vector<std::string> environment) const {
  Step step{std::move(why), given.environment, std::move(words), "", "", ""};
  step.environment.insert(step.environment.end(), environment.begin(), environment.end());
  step.words.insert(step.words.end(), given.program.begin(), given.program.end());
  return step;
}

Step import_step(const std::vector<std::string>& files, const std::string& output) {
  Step step{"make a run of it; `llmprof report` then shows it", {}, {"llmprof", "import"}, "", "", ""};
  step.words.insert(step.words.end(), files.begin(), files.end());
  step.words.insert(step.words.end(), {"-o", output});
  return step;
}

Result<Advice> advise(const std::string& tool, const Wish& wish) {
  if (tool != "nsys" && tool != "ncu" && tool != "cublas" && tool != "torch") {
    return Error{ErrorCode::kUsage, "no advice about " + tool, "there is advice about nsys, ncu, cublas and torch"};
  }
  Context context{wish, read_command(wish.command), std::nullopt};
  if (context.given.program.empty()) {
    return Error{ErrorCode::kUsage, "no program to profile is given",
                 "llmprof advise " + tool + " -- python3 program.py"};
  }
  if (wish.run != nullptr) {
    LLMPROF_LET(context.hints, hints_of(*wish.run, wish.stage));
  }
  Result<Advice> advice = tool == "nsys"     ? Result<Advice>(advise_nsys(context))
                          : tool == "ncu"    ? Result<Advice>(advise_ncu(context))
                          : tool == "cublas" ? Result<Advice>(advise_cublas(context))
                                             : advise_torch(context);
  if (advice) advice->mistakes = mistakes_in(context.given);
  return advice;
}

namespace {

using base::Json;

constexpr std::size_t kWidth = 110;

// A paragraph as comments.
std::string comment(std::string_view text, std::string_view first) {
  std::string out, line(first);
  const std::string indent = "#" + std::string(first.size() - 1, ' ');
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find(' ', at), text.size());
    const std::string_view word = text.substr(at, end - at);
    if (line.size() + word.size() + 1 > kWidth && line.size() > indent.size()) {
      out += line + "\n";
      line = indent;
    }
    line += ' ';
    line += word;
    at = end + 1;
  }
  return out + line + "\n";
}

std::string heredoc(const Step& step) {
  if (step.file.empty()) return "";
  return fmt::format("cat > {} <<'END_OF_FILE'\n{}END_OF_FILE\n", shell_word(step.file), step.text);
}

std::string paragraph(const Step& step, const std::string& head) {
  std::string text = comment(step.why, head) + heredoc(step);
  if (!step.words.empty()) text += shell_line(step) + "\n";
  return text;
}

std::string head(const Advice& advice) {
  if (advice.tool == "cublas") return "cuBLAS and cuBLASLt logs";
  const std::string name = advice.tool == "nsys"  ? "Nsight Systems"
                           : advice.tool == "ncu" ? "Nsight Compute"
                                                  : "PyTorch";
  if (advice.path.empty()) return name + ": not found here; this is for a recent version";
  return fmt::format("{} {} ({})", name, advice.version.empty() ? "of an unknown version" : advice.version,
                     advice.path);
}

Json step_json(const Step& step) {
  return {{"why", step.why},
          {"environment", step.environment},
          {"words", step.words},
          {"output", base::text_or_null(step.output)},
          {"line", step.words.empty() ? Json(nullptr) : Json(shell_line(step))},
          {"file", base::text_or_null(step.file)},
          {"text", base::text_or_null(step.text)}};
}

}  // namespace

std::string shell_line(const Step& step) {
  std::string line;
  for (const std::string& variable : step.environment) line += shell_assignment(variable) + " ";
  const bool import = step.words.size() > 1 && step.words[1] == "import";
  for (const std::string& word : step.words) line += (import ? shell_pattern(word) : shell_word(word)) + " ";
  if (!line.empty()) line.pop_back();
  if (!step.output.empty()) line += " > " + shell_word(step.output);
  return line;
}

std::string to_text(const Advice& advice) {
  std::string text = comment(head(advice), "#");
  for (const std::string& mistake : advice.mistakes) text += comment(mistake, "# wrong in what was given:");
  std::size_t number = 0;
  for (const Step& step : advice.steps) text += "\n" + paragraph(step, fmt::format("# {}.", ++number));
  for (const Step& step : advice.alternatives) {
    // Not to be run with the rest: as comments.
    text += "\n" + comment(step.why, "#");
    const std::string lines = heredoc(step) + (step.words.empty() ? "" : shell_line(step) + "\n");
    for (std::size_t at = 0; at < lines.size();) {
      const std::size_t end = lines.find('\n', at);
      text += fmt::format("#   {}\n", lines.substr(at, end - at));
      at = end + 1;
    }
  }
  if (!advice.notes.empty()) text += "\n";
  for (const std::string& note : advice.notes) text += comment(note, "# -");
  return text;
}

base::Json to_json(const Advice& advice) {
  Json json = {{"tool", advice.tool},
               {"installed", !advice.path.empty()},
               {"path", base::text_or_null(advice.path)},
               {"version", base::text_or_null(advice.version)},
               {"mistakes", advice.mistakes},
               {"steps", Json::array()},
               {"alternatives", Json::array()},
               {"notes", advice.notes}};
  for (const Step& step : advice.steps) json["steps"].push_back(step_json(step));
  for (const Step& step : advice.alternatives) json["alternatives"].push_back(step_json(step));
  return json;
}

namespace {

bool plain(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
         std::string_view("_-./:=,@%+").find(c) != std::string::npos;
}

}  // namespace

std::string shell_word(std::string_view word) {
  if (!word.empty() && std::ranges::all_of(word, plain)) return std::string(word);
  std::string quoted = "'";
  for (const char c : word) {
    if (c == '\'')
      quoted += "'\\''";
    else
      quoted += c;
  }
  return quoted + "'";
}

std::string shell_pattern(std::string_view word) {
  std::string text;
  for (std::size_t at = 0; at <= word.size();) {
    const std::size_t star = std::min(word.find('*', at), word.size());
    if (star > at) text += shell_word(word.substr(at, star - at));
    if (star < word.size()) text += '*';
    at = star + 1;
  }
  return text;
}

std::string shell_words(const std::vector<std::string>& words) {
  std::string line;
  for (const std::string& word : words) line += (line.empty() ? "" : " ") + shell_word(word);
  return line;
}

std::string shell_assignment(std::string_view assignment) {
  const std::size_t equals = assignment.find('=');
  if (equals == std::string_view::npos) return shell_word(assignment);
  const std::string_view value = assignment.substr(equals + 1);
  return std::string(assignment.substr(0, equals + 1)) + (value.empty() ? "" : shell_word(value));
}

}  // namespace llmprof::advise
