#include <fmt/format.h>

#include "advise/advise.h"
#include "advise/shell.h"
#include "base/json.h"

namespace llmprof::advise {
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

}  // namespace llmprof::advise
