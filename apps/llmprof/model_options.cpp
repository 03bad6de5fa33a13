// From the options of `llmprof model` to what the libraries take.

#include <fmt/format.h>

#include <cfloat>
#include <charconv>

#include "analyze/design/sweep.h"
#include "base/axis.h"
#include "hw/resolve.h"
#include "model/checkpoint/open_model.h"
#include "model_verb.h"
#include "report_verb.h"

namespace llmprof::app {
namespace {

namespace design = analyze::design;

constexpr std::int64_t kMostRanks = 4096;

// One of several words; `words` in the order of the values of Enum.
template <class Enum>
Result<Enum> one_of(const Arguments& arguments, std::string_view flag, std::initializer_list<std::string_view> words) {
  const std::string text = arguments.get(flag);
  std::string known;
  std::uint8_t index = 0;
  for (const std::string_view word : words) {
    if (text == word) return static_cast<Enum>(index);
    known += (known.empty() ? "" : ", ") + std::string(word);
    ++index;
  }
  return Error{ErrorCode::kUsage, fmt::format("{}: '{}' is not one of {}", flag, text, known), ""};
}

// 0 where the option was not given.
Result<std::int64_t> count_of(const Arguments& arguments, std::string_view flag, std::int64_t most = design::kMost) {
  const std::string text = arguments.get(flag);
  if (text.empty()) return std::int64_t{0};
  const Result<std::int64_t> count = base::parse_count(text);
  if (count && *count >= 1 && *count <= most) return count;
  return Error{ErrorCode::kUsage, fmt::format("{} wants a number from 1 to {}, not '{}'", flag, most, text), ""};
}

design::Roof without_peaks(const std::string& name) {
  design::Roof roof;
  roof.why = fmt::format("{} has no known peaks, so there are no floors: llmprof roofline, or --device NAME",
                         name.empty() ? "this machine" : name);
  return roof;
}

}  // namespace

Result<double> time_ns(std::string_view what, std::string_view text) {
  double value = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  const std::string_view unit(end, static_cast<std::size_t>(text.data() + text.size() - end));
  const double scale = unit == "ns"   ? 1
                       : unit == "us" ? 1e3
                       : unit == "ms" ? 1e6
                       : unit == "s"  ? 1e9
                       : unit == "m"  ? 60e9
                                      : 0;
  if (failure == std::errc{} && value > 0 && scale > 0 && value * scale < 1e18) return value * scale;
  return Error{ErrorCode::kUsage, fmt::format("{}: '{}' is not a time", what, text),
               "write it as 180ms, 21.5us, 1s or 10m"};
}

Result<design::Options> design_options(const Arguments& arguments) {
  design::Options options;
  LLMPROF_LET(options.batch, count_of(arguments, "--batch"));
  LLMPROF_LET(options.prompt, count_of(arguments, "--prompt"));
  LLMPROF_LET(options.context, count_of(arguments, "--context"));
  LLMPROF_LET(options.parallel.tensor, count_of(arguments, "--tp", kMostRanks));
  LLMPROF_LET(options.parallel.pipeline, count_of(arguments, "--pp", kMostRanks));
  LLMPROF_LET(options.parallel.expert, count_of(arguments, "--ep", kMostRanks));
  LLMPROF_LET(options.recompute, one_of<model::Recompute>(arguments, "--recompute", {"none", "cheap", "layers"}));
  LLMPROF_LET(options.latent, one_of<model::Latent>(arguments, "--mla", {"least", "absorbed", "expanded"}));
  options.train = arguments.on("--train");
  if (arguments.given("--mixed")) {
    LLMPROF_LET(options.mixed, design::parse_sequences(arguments.get("--mixed")));
  }
  return options;
}

Result<design::Measurement> measurement(const Arguments& arguments) {
  design::Measurement measured;
  if (arguments.given("--measured-tps")) {
    LLMPROF_LET(measured.tokens_per_s,
                number_in<double>(arguments, "--measured-tps", "tokens per second", DBL_MIN, 1e15));
  }
  if (arguments.given("--measured-ttft")) {
    LLMPROF_LET(measured.ttft_ns, time_ns("--measured-ttft", arguments.get("--measured-ttft")));
  }
  if (arguments.given("--measured-tpot")) {
    LLMPROF_LET(measured.tpot_ns, time_ns("--measured-tpot", arguments.get("--measured-tpot")));
  }
  return measured;
}

Result<design::Roof> roof_of(const std::string& device) {
  LLMPROF_LET(const hw::DeviceAndPeaks found, hw::resolve_device(device));
  if (found.peaks.empty()) return without_peaks(found.device.name);
  return design::Roof{.device = found.device.name,
                      .source = found.here ? "this machine" : "catalogue",
                      .memory_bytes = static_cast<double>(found.device.memory_bytes),
                      .on_chip_bytes = found.device.cache_bytes,
                      .peaks = found.peaks,
                      .why = ""};
}

model::Types types_of(const Arguments& arguments) {
  return {.weights = arguments.get("--dtype"),
          .kv = arguments.get("--kv-dtype"),
          .activations = arguments.get("--activation-dtype"),
          .arithmetic = arguments.get("--arithmetic")};
}

Result<design::Subject> open_subject(const std::string& name_or_path, const model::Types& types) {
  LLMPROF_LET(model::OpenedModel opened, model::open_model(name_or_path));
  design::Subject subject{.config = std::move(opened.config),
                          .origin = std::move(opened.origin),
                          .notes = std::move(opened.notes),
                          .checkpoint = std::move(opened.checkpoint)};
  LLMPROF_TRY(model::set_types(subject.config, types));
  return subject;
}

}  // namespace llmprof::app
