// llmprof load: a load on an OpenAI-compatible server, measured from outside.

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>

#include "base/file.h"
#include "base/human.h"
#include "base/json.h"
#include "base/numbers.h"
#include "base/text_table.h"
#include "given_names.h"
#include "hw/environment.h"
#include "hw/redact.h"
#include "live_verb.h"
#include "load/vllm_json.h"
#include "load/write_run.h"
#include "load_verb.h"
#include "record/run/capture.h"
#include "report/load.h"
#include "report_verb.h"
#include "serving_options.h"

namespace llmprof::app {
namespace load_verb {
namespace {

constexpr Option kOptions[] = {
    {"--model", "", "", "NAME", "", "the model to ask for; else the first that the server lists"},
    {"--endpoint", "", "", "completions|chat", "", "which API; else completions, if the server has it"},
    {"--prompts", "", "", "FILE", "",
     "a data set: ShareGPT, JSON lines with prompt and output_tokens, OpenAI chat requests, a mooncake trace"},
    {"--tokenizer", "", "", "FILE", "",
     "the model's tokenizer.json: prompts of exactly so many tokens; output of servers that send no usage is counted"},
    {"--count", "", "", "FILE", "", "print the tokens of every prompt of a data set by --tokenizer as JSON; send nothing"},
    {"--max-outstanding", "", "", "N", "",
     "open loop: at most so many at once; who has to wait here is counted, and the wait is shown"},
    {"--warmup", "", "", "N", "0", "requests sent first, which are in no figure"},
    {"--duration", "", "", "TIME", "", "send nothing more after this time"},
    {"--timeout", "", "", "TIME", "600s", "give up a request that got no byte for so long"},
    {"--no-stream", "", "", "", "", "ask for answers in one piece: no TTFT, no TPOT"},
    {"--ignore-eos", "", "", "", "", "ask for exactly --new tokens (a field that vLLM, SGLang and our server know)"},
    {"--send-ids", "", "", "", "", "completions: send token ids instead of text, with --tokenizer"},
    {"--temperature", "", "", "X", "", "of the sampler; else the server's default"},
    {"--body", "", "", "KEY=JSON", "", "a further field of every request; null takes one out; may be repeated", true},
    {"--header", "", "", "LINE", "", "a header of every request, as 'Name: value'; may be repeated", true},
    {"--insecure", "", "", "", "", "do not check TLS certificates"},
    {"--cacert", "", "", "FILE", "", "trust the certificates in this file instead of the system's"},
    {"--find-rate", "", "", "", "", "search the highest rate that keeps --slo"},
    {"--good", "", "", "SHARE", "0.99", "with --find-rate and --sweep: requests that have to keep --slo"},
    {"--sweep", "", "", "NAME=VALUES", "", "several loads: rate=1..32:x2, rate=0.5,1,2 or concurrency=1,4,16"},
    {"--probe", "", "", "TIME", "20s", "--find-rate and --sweep rate=…: length of each load, unless --requests is given"},
    {"--plot", "", "", "FILE", "", "with --sweep and --find-rate: latency over throughput as .svg or .png"},
    {"--steady", "", "", "SHARE", "",
     "the steady part: concurrency at least this share of its peak; else 0.9 in a closed loop, 0.5 in an open one"},
    {"--vllm-json", "", "", "FILE", "", "also write the result as vLLM's bench serve does, with its lists"},
    {"--output", "-o", "", "NAME", "", "name of the run; else load-DATE-TIME. With --sweep a run per point"},
    {"--force", "-f", "", "", "", "replace an existing run of that name"},
    {"--no-run", "", "", "", "", "write no run"},
    {"--quiet", "-q", "", "", "", "no progress"},
    {"--json", "", "", "", "", "print everything as JSON (docs/format/json-load.md)"},
};
constexpr Positional kPositionals[] = {{"URL", false}};

volatile sig_atomic_t stops = 0;

// Without SA_RESTART: the wait for answers ends.
void catch_stops() {
  struct sigaction action {};
  action.sa_handler = [](int) { stops = stops + 1; };
  for (const int number : {SIGINT, SIGTERM}) ::sigaction(number, &action, nullptr);
  ::signal(SIGPIPE, SIG_IGN);
}

class ProgressOnTerminal {
 public:
  ProgressOnTerminal(bool wanted, std::string what)
      : shown_(wanted && ::isatty(STDERR_FILENO) == 1), what_(std::move(what)) {}
  ~ProgressOnTerminal() {
    if (shown_) fmt::print(stderr, "\r\033[K");
  }
  void show(const load::Live& live) {
    if (!shown_) return;
    std::string text = fmt::format("{}{}sent {} of {}, {} running", what_, live.warm_up ? "warm-up: " : "", live.sent, live.all,
                                   live.running);
    if (live.waiting > 0) text += fmt::format(", {} waiting here", live.waiting);
    text += fmt::format(", {} done", live.done);
    if (live.errors > 0) text += fmt::format(", {} failed", live.errors);
    if (live.seconds > 0)
      text += fmt::format(", {} messages/s", base::human_count(static_cast<double>(live.messages) / live.seconds));
    if (live.mean_ttft_ns > 0) text += fmt::format(", TTFT {}", base::human_ns(live.mean_ttft_ns));
    text += fmt::format(", {:.0f} s{}", live.seconds, stops > 0 ? ", ending" : "");
    fmt::print(stderr, "\r\033[K{}", base::shorten(text, terminal_width() - 1));
    std::fflush(stderr);
  }

 private:
  bool shown_;
  std::string what_;
};

// What was typed, for the run: without secrets.
std::vector<std::string> command_of(const Arguments& arguments) {
  std::vector<std::string> words{"llmprof", "load"};
  words.insert(words.end(), arguments.positionals.begin(), arguments.positionals.end());
  for (const Option& option : kLoad.all_options()) {
    if (!arguments.typed(option.flag)) continue;
    std::vector<std::string> values = option.many ? arguments.all(option.flag) : std::vector{arguments.get(option.flag)};
    for (std::string& value : values) {
      words.emplace_back(option.flag);
      if (option.value.empty()) continue;
      const std::string name = value.substr(0, value.find(':'));
      words.push_back(option.flag == "--header" && hw::names_secret(name) ? name + ": ***" : std::move(value));
    }
  }
  return hw::redact(words);
}

load::VllmFacts vllm_facts(const Arguments& arguments, const load::LoadResult& result) {
  load::VllmFacts facts{.rate = base::parse_number<double>(arguments.get("--rate"))};
  const std::string how = arguments.get("--arrivals");
  if (how == "constant") facts.burstiness = std::numeric_limits<double>::infinity();
  if (how.starts_with("gamma:")) {
    const double cv = base::parse_number<double>(std::string_view(how).substr(6)).value_or(1);
    facts.burstiness = 1 / (cv * cv);
  }
  facts.wall_ns = static_cast<std::int64_t>(result.clocks.front().wall_ns);
  return facts;
}

Result<int> count_only(const Arguments& arguments) {
  if (!arguments.given("--tokenizer"))
    return Error{ErrorCode::kUsage, "--count needs --tokenizer FILE", "the model's tokenizer.json"};
  LLMPROF_LET(const load::Tokenizer tokenizer, load::Tokenizer::read(arguments.get("--tokenizer")));
  LLMPROF_LET(const std::string counts, load::count_prompts(arguments.get("--count"), tokenizer));
  print(counts);
  return 0;
}

Result<int> run(const Arguments& arguments) {
  if (arguments.given("--count")) return count_only(arguments);
  if (arguments.positionals.empty())
    return Error{ErrorCode::kUsage, "which server?", "as in llmprof load http://127.0.0.1:8000"};
  if (arguments.given("--plot")) LLMPROF_TRY(check_ending("--plot", arguments.get("--plot"), {".svg", ".png"}));
  if (arguments.given("--vllm-json")) LLMPROF_TRY(check_ending("--vllm-json", arguments.get("--vllm-json"), {".json"}));
  LLMPROF_LET(AskedLoad asked, asked_load(arguments));
  catch_stops();
  if (arguments.given("--sweep") || arguments.on("--find-rate")) return run_load_series(arguments, asked);
  LLMPROF_LET(load::Prompts prompts, asked_prompts(arguments, asked, asked.requests, asked.seed));
  LLMPROF_LET(const load::Prompts warm_up, warm_up_prompts(arguments, asked));
  LLMPROF_LET(const LoadRun done, run_load(arguments, asked, prompts, warm_up));
  const load::About about = about_of(asked, prompts);
  report::LoadPage page{.document = load::document_of(done.result, done.figures, about)};
  if (!asked.folder.empty()) {
    LLMPROF_TRY(write_load(asked.folder, arguments, done));
    page.document.run = asked.folder;
  }
  if (const std::string file = arguments.get("--vllm-json"); !file.empty()) {
    const base::Json json = load::vllm_json(done.result, about, vllm_facts(arguments, done.result));
    LLMPROF_TRY(base::write_file(file, base::to_line(json) + "\n", base::Readers::kAsTheUmaskSays));
  }
  print(laid_out(page, arguments, "llmprof.load"));
  constexpr int kInterrupted = 130;
  return done.result.interrupted ? kInterrupted : 0;
}

}  // namespace
}  // namespace load_verb

Result<LoadRun> run_load(const Arguments& arguments, AskedLoad& asked, const load::Prompts& prompts,
                         const load::Prompts& warm_up, const std::string& what) {
  load_verb::ProgressOnTerminal progress(!arguments.on("--quiet"), what);
  asked.options.stops = [] { return static_cast<int>(load_verb::stops); };
  asked.options.progress = [&](const load::Live& live) { progress.show(live); };
  LLMPROF_LET(load::LoadResult result, load::run_load(prompts, warm_up, asked.options));
  if (asked.tokenizer) load::count_tokens(*asked.tokenizer, result);
  load::Figures figures = load::figures_of(result, asked.slo, asked.steady_level);
  return LoadRun{std::move(result), std::move(figures)};
}

load::About about_of(const AskedLoad& asked, const load::Prompts& prompts) {
  const load::LoadOptions& options = asked.options;
  return {.url = options.http.base_url,
          .model = options.body.model,
          .workload = prompts.description,
          .endpoint = options.body.endpoint,
          .stream = options.body.stream,
          .concurrency = options.concurrency,
          .most_outstanding = options.most_outstanding,
          .slo = asked.slo,
          .notes = {}};
}

Result<void> write_load(const std::string& folder, const Arguments& arguments, const LoadRun& run) {
  const load::RunFacts facts{.command = load_verb::command_of(arguments),
                             .environment = base::to_text(hw::environment_card()),
                             .notes = {}};
  record::remove_run_folder(folder);
  return load::write_run(folder, run.result, run.figures, facts);
}

const Verb kLoad{"load",
                 "put a load on a server, and measure it",
                 load_verb::kOptions,
                 load_verb::kPositionals,
                 false,
                 load_verb::run,
                 workload_options};

}  // namespace llmprof::app
