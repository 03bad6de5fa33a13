#include "advise/mistakes.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <regex>

#include "base/file.h"

namespace llmprof::advise {
namespace {

using Found = std::vector<std::string>;

constexpr std::uint64_t kMostScriptBytes = 4 << 20;

bool contains(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

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
  if (formats != nullptr && contains(*formats, "jsonlines")) {
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
  if (contains(metrics, "sm__ops_path_tensor_src_fp8_dst_fp32")) {
    found.emplace_back("sm__ops_path_tensor_src_fp8_dst_fp32 does not exist on Hopper: sm__ops_path_tensor_src_fp8");
  }
  if (contains(metrics, "nvlrx__") || contains(metrics, "nvltx__")) {
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
  if (contains(text, "torch.profiler.schedule(") || contains(text, "schedule=schedule(")) {
    if (!std::regex_search(text, std::regex(R"(\.step\(\s*\))"))) {
      found.push_back(name + " gives torch.profiler a schedule but never calls .step(): nothing is recorded");
    }
  }
  if (contains(text, "nvmlDeviceGetUtilizationRates") || contains(text, "utilization.gpu")) {
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
  if (contains(program, "nvidia-smi") || contains(program, "utilization.gpu")) {
    found.emplace_back(
        "\"GPU utilisation\" of nvidia-smi is the part of the time in which any kernel ran, however few SMs it used: "
        "not a measure of how well the GPU is used");
  }
  if (const std::string script = given.script(); !script.empty()) {
    const Result<std::string> text = base::read_file(script, kMostScriptBytes);
    if (text) check_script(script, *text, found);
  }
  // python -c "import os; os.environ[...]": the words of the command are a script, too.
  if (contains(program, "environ")) check_script("the command", program, found);
  return found;
}

}  // namespace llmprof::advise
