#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <regex>

#include "advise/makers.h"
#include "base/file.h"
#include "base/strings.h"

namespace llmprof::advise {

namespace {

// Options of ncu without a value; all others have one. nsys's all have one.
constexpr std::string_view kNcuSwitches =
    " --help -h --version -v --nvtx --csv --quiet --verbose --force-overwrite -f --call-stack "
    "--null-stdin --list-sets --list-sections --list-rules --list-metrics --list-chips --query-metrics "
    "--disable-extra-suffixes --disable-profiler-start-stop --section-folder-restore --support-32bit "
    "--forward-signals --print-fp --print-kernel-base-demangled --summary ";

bool assignment(std::string_view word) {
  const std::size_t equals = word.find('=');
  if (equals == std::string_view::npos || equals == 0 || std::isdigit(static_cast<unsigned char>(word[0])) != 0)
    return false;
  return std::ranges::all_of(word.substr(0, equals), [](unsigned char c) { return std::isalnum(c) || c == '_'; });
}

bool has_value(const std::string& tool, std::string_view name) {
  return tool == "nsys" || kNcuSwitches.find(fmt::format(" {} ", name)) == std::string_view::npos;
}

// The options of the tool from `at` on; returns where the program begins.
std::size_t read_options(const std::vector<std::string>& words, std::size_t at, GivenCommand& given) {
  for (; at < words.size() && words[at].starts_with('-'); ++at) {
    const std::string& word = words[at];
    if (word == "--") return at + 1;
    const bool is_long = word.starts_with("--");
    const std::size_t equals = word.find('=');
    if (equals != std::string::npos) {
      given.options.emplace_back(word.substr(0, equals), word.substr(equals + 1));
    } else if (!is_long && word.size() > 2) {
      given.options.emplace_back(word.substr(0, 2), word.substr(2));
    } else if (has_value(given.tool, word) && at + 1 < words.size()) {
      given.options.emplace_back(word, words[++at]);
    } else {
      given.options.emplace_back(word, "");
    }
  }
  return at;
}

}  // namespace

const std::string* GivenCommand::option(std::string_view name, std::string_view other) const {
  for (const auto& [option, value] : options) {
    if (option == name || (!other.empty() && option == other)) return &value;
  }
  return nullptr;
}

std::string GivenCommand::variable(const std::string& name) const {
  for (const std::string& text : environment) {
    if (text.starts_with(name + "=")) return text.substr(name.size() + 1);
  }
  return base::env_or(name.c_str(), "");
}

std::string GivenCommand::script() const {
  for (const std::string& word : program) {
    if (word.ends_with(".py") && !word.starts_with('-')) return word;
  }
  return "";
}

GivenCommand read_command(const std::vector<std::string>& words) {
  GivenCommand given;
  std::size_t at = 0;
  while (at < words.size() && (assignment(words[at]) || (words[at] == "env" && given.program.empty()))) {
    if (words[at] != "env") given.environment.push_back(words[at]);
    ++at;
  }
  if (at < words.size() && (base::base_name(words[at]) == "nsys" || base::base_name(words[at]) == "ncu")) {
    given.tool = base::base_name(words[at++]);
    if (given.tool == "nsys" && at < words.size() && words[at] == "profile") ++at;
    at = read_options(words, at, given);
  }
  given.program.assign(words.begin() + static_cast<std::ptrdiff_t>(at), words.end());
  return given;
}

namespace {

using Found = std::vector<std::string>;

constexpr std::uint64_t kMostScriptBytes = 4 << 20;

void check_nsys_range(const GivenCommand& given, Found& found) {
  const std::string* range = given.option("--capture-range", "-c");
  const std::string* end = given.option("--capture-range-end");
  static const std::regex kEnds("none|stop|stop-shutdown|repeat(:[0-9]+)?|repeat-shutdown:[0-9]+");
  if (end != nullptr && !std::regex_match(*end, kEnds)) {
    found.push_back(
        fmt::format("--capture-range-end={} is not a value of nsys: it is none, stop, stop-shutdown, repeat[:N] or "
                    "repeat-shutdown:N",
                    *end));
  }
  if (range == nullptr || *range == "none") {
    if (end != nullptr) found.emplace_back("--capture-range-end says nothing without --capture-range");
    return;
  }
  if (end == nullptr) {
    found.emplace_back(
        "without --capture-range-end nsys ends the program when the range closes (exit status 143): "
        "--capture-range-end=stop lets it run on");
  }
  if (*range != "nvtx") return;
  if (given.option("--nvtx-capture", "-p") == nullptr) {
    found.emplace_back("--capture-range=nvtx needs the name of the range: -p NAME, or NAME@DOMAIN");
  }
  if (given.variable("NSYS_NVTX_PROFILER_REGISTER_ONLY") != "0") {
    found.emplace_back(
        "without NSYS_NVTX_PROFILER_REGISTER_ONLY=0 nsys only sees ranges whose names are registered strings, and "
        "writes no report");
  }
}

void check_nsys(const GivenCommand& given, Found& found) {
  check_nsys_range(given, found);
  const std::string* output = given.option("--output", "-o");
  if (output != nullptr && output->ends_with(".qdrep")) {
    found.push_back(fmt::format("{}: reports are .nsys-rep files since 2021; nsys adds the ending itself: -o {}",
                                *output, output->substr(0, output->size() - 6)));
  }
  const std::string* formats = given.option("--export");
  if (formats != nullptr && base::contains(*formats, "jsonlines")) {
    found.emplace_back("--export=jsonlines is refused by recent versions; sqlite is what llmprof reads");
  }
}

void check_ncu_metrics(const std::string& metrics, Found& found) {
  static const std::regex kOldStalls(
      "smsp__warp_stall_[A-Za-z_*]*|smsp__warps?_stalled_[A-Za-z_*]*_per_warp_active[.a-z]*");
  if (std::smatch match; std::regex_search(metrics, match, kOldStalls)) {
    found.push_back(fmt::format(
        "{}: no metric of recent GPUs; stalls are smsp__average_warps_issue_stalled_REASON_per_issue_active.ratio "
        "(REASON: long_scoreboard, math_pipe_throttle, barrier, …)",
        match.str()));
  }
  if (base::contains(metrics, "sm__ops_path_tensor_src_fp8_dst_fp32")) {
    found.emplace_back("sm__ops_path_tensor_src_fp8_dst_fp32 does not exist on Hopper: sm__ops_path_tensor_src_fp8");
  }
  if (base::contains(metrics, "nvlrx__") || base::contains(metrics, "nvltx__")) {
    found.emplace_back(
        "nvlrx__… and nvltx__… make ncu fail as a whole (exit status 9, no rows) where there is no NVLink");
  }
}

void check_ncu(const GivenCommand& given, Found& found) {
  if (const std::string* kernels = given.option("--kernels"); kernels != nullptr) {
    std::string name = kernels->substr(kernels->find_last_of(':') + 1);
    std::erase(name, '*');
    found.push_back(fmt::format("--kernels {} is no option of ncu (it was nvprof's): -k regex:{}", *kernels,
                                name.empty() ? "NAME" : name));
  }
  if (const std::string* name = given.option("--kernel-name", "-k");
      name != nullptr && !name->starts_with("regex:") && name->find_first_of("*|^$+") != std::string::npos) {
    found.push_back(fmt::format("-k {} is taken literally: a pattern needs regex: in front, as in -k regex:…", *name));
  }
  if (const std::string* range = given.option("--nvtx-include"); range != nullptr) {
    if (!range->empty() && range->find_first_of("/]") == std::string::npos && !range->starts_with('[')) {
      found.push_back(
          fmt::format("--nvtx-include {} matches start/end ranges only; ranges that are pushed and popped (torch, most "
                      "others) need a slash: --nvtx-include '{}/'",
                      *range, *range));
    }
    if (given.option("--nvtx") == nullptr) found.emplace_back("--nvtx-include needs --nvtx beside it");
  }
  if (given.option("--import", "-i") != nullptr && given.option("--nvtx") != nullptr) {
    found.emplace_back("--nvtx together with --import is an error: leave it out");
  }
  if (const std::string* metrics = given.option("--metrics"); metrics != nullptr) check_ncu_metrics(*metrics, found);
}

void check_script(const std::string& name, const std::string& text, Found& found) {
  static const std::regex kLateLog(
      R"(environ(\.setdefault\(|\.update\(|\[)\s*\{?\s*['"](CUBLAS_LOG[A-Z]*_DBG|CUBLASLT_LOG_[A-Z]+))");
  if (std::smatch match; std::regex_search(text, match, kLateLog)) {
    found.push_back(fmt::format(
        "{} sets {} itself: libraries that are loaded by then have read their environment; set it before the "
        "program starts",
        name, match[2].str()));
  }
  if (base::contains(text, "torch.profiler.schedule(") || base::contains(text, "schedule=schedule(")) {
    if (!std::regex_search(text, std::regex(R"(\.step\(\s*\))"))) {
      found.push_back(name + " gives torch.profiler a schedule but never calls .step(): nothing is recorded");
    }
  }
  if (base::contains(text, "nvmlDeviceGetUtilizationRates") || base::contains(text, "utilization.gpu")) {
    found.push_back(
        name +
        " reads the GPU utilisation of NVML: the part of the time in which any kernel ran, however few SMs it used");
  }
}

}  // namespace

std::vector<std::string> mistakes_in(const GivenCommand& given) {
  Found found;
  if (given.tool == "nsys") check_nsys(given, found);
  if (given.tool == "ncu") check_ncu(given, found);
  std::string program;
  for (const std::string& word : given.program) program += word + ' ';
  if (base::contains(program, "nvidia-smi") || base::contains(program, "utilization.gpu")) {
    found.emplace_back(
        "\"GPU utilisation\" of nvidia-smi is the part of the time in which any kernel ran, however few SMs it used: "
        "not a measure of how well the GPU is used");
  }
  if (const std::string script = given.script(); !script.empty()) {
    const Result<std::string> text = base::read_file(script, kMostScriptBytes);
    if (text) check_script(script, *text, found);
  }
  // python -c "import os; os.environ[...]": the words of the command are a script, too.
  if (base::contains(program, "environ")) check_script("the command", program, found);
  return found;
}

}  // namespace llmprof::advise
