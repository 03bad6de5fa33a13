// The options of `record` that say what of a GPU is recorded, as the collectors are told (libs/collect/settings.h).

#include <fmt/format.h>

#include "record_verb.h"
#include "verb.h"

namespace llmprof::app {
namespace {

struct Word {
  std::string_view name;
  std::uint64_t value;
};
constexpr Word kGpu[] = {{"kernels", 1}, {"memory", 2}, {"waits", 4}, {"api", 8}, {"overhead", 16}};
constexpr Word kKernels[] = {{"all", 0}, {"sampled", 1}};
constexpr Word kRests[] = {{"none", 0}, {"watching", 1}, {"everything", 2}};
constexpr Word kGraphs[] = {{"launch", 0}, {"sampled", 1}, {"all", 2}};

template <std::size_t N>
Result<std::uint64_t> value_of(const Word (&words)[N], std::string_view flag, std::string_view name) {
  std::string known;
  for (const Word& word : words) {
    if (word.name == name) return word.value;
    known += fmt::format("{}{}", known.empty() ? "" : ", ", word.name);
  }
  return Error{ErrorCode::kUsage, fmt::format("{}: '{}' is not known", flag, name), "one of " + known};
}

// Kernels are always among them: the rest is told beside them.
Result<std::uint64_t> gpu_bits(std::string_view text) {
  std::uint64_t bits = 1;
  for (std::size_t comma = 0; comma != std::string_view::npos;) {
    comma = text.find(',');
    LLMPROF_LET(const std::uint64_t bit, value_of(kGpu, "--gpu", text.substr(0, comma)));
    bits |= bit;
    text.remove_prefix(comma == std::string_view::npos ? text.size() : comma + 1);
  }
  return bits;
}

}  // namespace

Result<record::RestOption> rest_option(const Arguments& arguments) {
  const std::string rests = arguments.get("--rests");
  record::RestOption option;
  if (rests.empty()) return option;
  const std::size_t colon = rests.find(':');
  LLMPROF_LET(const std::uint64_t of, value_of(kRests, "--rests", std::string_view(rests).substr(0, colon)));
  option.of = static_cast<record::RestOption::Of>(of);
  if (colon == std::string::npos) return option;
  LLMPROF_LET(const std::int64_t lasts_ns, record::parse_duration(rests.substr(colon + 1)));
  if (lasts_ns < 1'000'000) return Error{ErrorCode::kUsage, "--rests: a rest lasts 1 ms at least", ""};
  option.lasts_ns = static_cast<std::uint64_t>(lasts_ns);
  return option;
}

Result<record::CollectorSettings> collector_settings(const Arguments& arguments) {
  record::CollectorSettings settings;
  const std::string gpu = arguments.get("--gpu"), graphs = arguments.get("--graphs");
  const std::string stacks = arguments.get("--stacks"), kernels = arguments.get("--kernels");
  if (arguments.on("--no-gpu")) {
    if (!gpu.empty() || !graphs.empty() || !stacks.empty() || !kernels.empty()) {
      return Error{ErrorCode::kUsage, "--no-gpu records nothing of the GPU",
                   "leave out --gpu, --kernels, --graphs and --stacks"};
    }
    settings.gpu = 0;
  }
  if (!stacks.empty() && arguments.on("--no-stacks")) {
    return Error{ErrorCode::kUsage, "--stacks asks for stacks and --no-stacks for none", "leave out one of them"};
  }
  if (!gpu.empty()) {
    LLMPROF_LET(settings.gpu, gpu_bits(gpu));
  }
  if (!graphs.empty()) {
    LLMPROF_LET(settings.graphs, value_of(kGraphs, "--graphs", graphs));
  }
  if (!kernels.empty()) {
    LLMPROF_LET(settings.kernels, value_of(kKernels, "--kernels", kernels));
  }
  if (!stacks.empty()) {
    LLMPROF_LET(settings.stacks, record::parse_stacks(stacks));
  }
  return settings;
}

}  // namespace llmprof::app
