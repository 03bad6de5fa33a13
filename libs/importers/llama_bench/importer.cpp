// llama-bench of llama.cpp: -o json (an array) or jsonl, an object a test. Its samples are rates of whole tests without a
// server: figures, not requests.
#include "importers/importer.h"

#include <fmt/format.h>

#include <array>

#include "base/json.h"
#include "base/strings.h"
#include "importers/experiment.h"
#include "importers/json_values.h"

namespace llmprof::importers {
namespace llama_bench {
namespace {

using base::Json;

constexpr std::string_view kHint = "write it with llama-bench -o json or -o jsonl";

int sniff(std::string_view head) {
  return base::contains(head, "\"avg_ts\"") && base::contains(head, "\"n_prompt\"") ? 95 : 0;
}

// As llama-bench's own table names a test: pp512, tg128, pp512+tg128, tg128 @ d4096.
std::string test_of(std::int64_t prompt, std::int64_t generated, std::int64_t depth) {
  std::string out;
  if (prompt > 0) out = fmt::format("pp{}", prompt);
  if (generated > 0) out += fmt::format("{}tg{}", out.empty() ? "" : "+", generated);
  if (depth > 0) out += fmt::format(" @ d{}", depth);
  return out.empty() ? "test" : out;
}

struct Kind {
  std::string_view key, what;
};
Kind kind_of(std::int64_t prompt, std::int64_t generated) {
  if (prompt > 0 && generated > 0) return {"total_tokens_per_s", "prompt and generated tokens"};
  if (generated > 0) return {"output_tokens_per_s", "generated tokens, one after the other,"};
  return {"prompt_tokens_per_s", "tokens of one prompt"};
}

bool take(const Json& result, Sink& sink) {
  if (member(result, "avg_ts") == nullptr) return false;
  const std::int64_t prompt = whole(result, "n_prompt").value_or(0), generated = whole(result, "n_gen").value_or(0);
  const std::string test = test_of(prompt, generated, whole(result, "n_depth").value_or(0));
  static constexpr std::array<std::string_view, 4> kNames = {"avg_ns", "stddev_ns", "avg_ts", "stddev_ts"};
  const std::string_view type = text(result, "model_type"), file = text(result, "model_filename");
  Json settings = settings_of(result, kNames);
  if (!file.empty()) settings["model_filename"] = file.substr(file.find_last_of("/\\") + 1);  // where it lies is nobody's business
  Experiment experiment(sink, "llama-bench", test, type.empty() ? file : type, settings);
  const Kind kind = kind_of(prompt, generated);
  const std::string rate = fmt::format("{} / time of the test, no server and no queue; mean: of the rates of its repetitions", kind.what);
  const Meaning rates{test, kind.key, "tokens/s", rate};
  const Meaning times{test, "", "ns", "time of one repetition of the test"};
  experiment.figure(rates, "mean", member(result, "avg_ts"));
  experiment.figure(rates, "std", member(result, "stddev_ts"));
  for (const Json& sample : array(result, "samples_ts")) experiment.figure(rates, "sample", &sample);
  experiment.figure(times, "mean", member(result, "avg_ns"));
  experiment.figure(times, "std", member(result, "stddev_ns"));
  for (const Json& sample : array(result, "samples_ns")) experiment.figure(times, "sample", &sample);
  return true;
}

Result<void> parse(Input& input, Sink& sink) {
  JsonValues values(input, sink);
  Json result;
  std::int64_t tests = 0;
  std::string build;
  for (;;) {
    LLMPROF_LET(const bool more, values.next(result));
    if (!more) break;
    if (!take(result, sink)) {
      sink.lose(trace::Loss::kInputIgnored, 1, "objects that are no tests", values.where());
      continue;
    }
    if (tests++ == 0) {
      build = text(result, "build_commit").substr(0, 40);
      if (const auto number = whole(result, "build_number")) build += fmt::format(" ({})", *number);
    }
  }
  if (tests == 0) return values.refuse("holds no test of llama-bench", kHint);
  sink.set_facts({.tool = build.empty() ? "llama-bench" : "llama-bench, build " + build});
  return {};
}

}  // namespace
}  // namespace llama_bench

extern const Importer kLlamaBench;
const Importer kLlamaBench{"llama-bench", "llama-bench, JSON or JSON Lines", Role::kSummary, llama_bench::sniff,
                           llama_bench::parse, false};

}  // namespace llmprof::importers
