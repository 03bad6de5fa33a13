// torch.profiler: a program that runs the user's Python program below it, and a module for programs that profile a few
// steps of a loop.

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "advise/makers.h"
#include "base/asset.h"

namespace llmprof::advise {

std::span<const base::Asset> assets();

namespace {

constexpr std::chrono::milliseconds kPatience{20'000};
// Python's options with a word of their own behind them.
constexpr std::array<std::string_view, 3> kWithWord{"-X", "-W", "--check-hash-based-pycs"};

bool is_python(const std::string& word) { return word.substr(word.rfind('/') + 1).starts_with("python"); }

// Where the program begins behind python and its options: a script, or "-m".
std::size_t program_begin(const std::vector<std::string>& words) {
  std::size_t at = 1;
  while (at < words.size() && words[at].starts_with('-') && words[at] != "-m" && words[at] != "-c" &&
         words[at] != "-") {
    at += std::ranges::find(kWithWord, words[at]) != kWithWord.end() ? 2 : 1;
  }
  return std::min(at, words.size());
}

std::string torch_version(const std::string& python) {
  if (python.empty()) return "";
  const Result<std::string> text =
      output_of({python, "-c", "import importlib.metadata as m; print(m.version('torch'))"}, kPatience);
  return text && text->find("Error") == std::string::npos ? version_in(*text) : "";
}

std::string with_name(std::string_view text, const std::string& output) {
  std::string result(text);
  std::string quoted = "\"";
  for (const char c : output) quoted += c == '"' || c == '\\' ? std::string("\\") + c : std::string(1, c);
  for (std::size_t at = result.find("\"@OUTPUT@"); at != std::string::npos; at = result.find("\"@OUTPUT@", at + 1)) {
    result.replace(at, std::string_view("\"@OUTPUT@").size(), quoted);
  }
  return result;
}

}  // namespace

Result<Advice> advise_torch(const Context& context) {
  const std::vector<std::string>& program = context.given.program;
  if (!is_python(program[0]) && !program[0].ends_with(".py")) {
    return Error{ErrorCode::kUsage, program[0] + " is not Python: torch.profiler works inside a Python program",
                 "llmprof advise torch -- python3 program.py; for other programs: llmprof advise nsys"};
  }
  const std::string& output = context.wish.output;
  std::vector<std::string> words = program;
  if (!is_python(program[0])) words.insert(words.begin(), "python3");
  const std::size_t begin = program_begin(words);
  if (begin == words.size() || words[begin] == "-c" || words[begin] == "-") {
    return Error{ErrorCode::kUsage, "the program must be a file or a module (-m)",
                 "llmprof advise torch -- python3 program.py"};
  }
  const std::string python = find_on_path(words[0], context.wish.places.path);
  const std::string version = torch_version(python);
  Advice advice{"torch", version.empty() ? "" : python, version, {}, {}, {}, {}};
  const std::string wrapper = output + "_torch.py", module = output + "_steps.py";
  words.insert(words.begin() + static_cast<std::ptrdiff_t>(begin), wrapper);
  advice.steps.push_back({"run the program below torch.profiler: operators with shapes and stacks, kernels, memory",
                          context.given.environment, words, "", wrapper,
                          with_name(base::find_asset(assets(), "torch/program.py"), output)});
  advice.steps.push_back(import_step({output + ".json", output + ".pickle"}, output));
  advice.alternatives.push_back(
      {"instead, a few steps of a loop of your own (its head says how): small files, and the first steps left out",
       {},
       {},
       "",
       module,
       with_name(base::find_asset(assets(), "torch/steps.py"), output)});
  advice.notes.emplace_back(
      "ranges named prefill, decode_step, forward, backward, optimizer (torch.profiler.record_function) become stages; "
      "nn.Module names need with_stack");
  advice.notes.emplace_back(
      "a whole program may make traces of gigabytes and needs as much memory: prefer a few steps; with_stack and "
      "profile_memory "
      "cost most, leave them out where only times matter");
  advice.notes.emplace_back(
      "kernels of a replayed CUDA graph belong to the replay as a whole: torch.profiler does not say which operator "
      "made them");
  return advice;
}

}  // namespace llmprof::advise
