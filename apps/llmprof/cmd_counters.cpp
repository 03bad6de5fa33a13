// llmprof counters: the hardware counters that can be recorded, by chip: sets, formulas, passes.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>

#include "base/json.h"
#include "base/strings.h"
#include "counters_verb.h"
#include "hw/device.h"

namespace llmprof::app {
namespace counters_verb {
namespace {

using namespace hw::counters;

constexpr Option kOptions[] = {
    {"--chip", "", "", "CHIP", "", "a chip (GH100) or a device that has it (h200); this machine's GPU unless told"},
    {"--method", "", "", "METHOD", "", "only what this method offers: range, kernel or sampled"},
    {"--raw", "", "", "PATTERN", "", "the chip's own metrics, by a part of their name or a pattern with * and ?"},
    {"--json", "", "", "", "", "print as JSON"},
};
constexpr Positional kPositionals[] = {{"NAME", false, true}};

Result<WantedMethod> method_of(const std::string& word) {
  if (word.empty()) return WantedMethod();
  for (const Method method : {Method::kRange, Method::kKernel, Method::kSampled}) {
    if (word == name_of(method)) return WantedMethod(method);
  }
  return Error{ErrorCode::kUsage, fmt::format("there is no method `{}`", word),
               "Methods are range, kernel and sampled."};
}

Error unknown_chip(const std::string& word) {
  std::string upper = word;
  for (char& c : upper) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  std::string nearest;
  std::size_t fewest = 3;
  for (const std::string_view chip : chips()) {
    if (const std::size_t edits = base::edits(upper, chip); edits < fewest) {
      fewest = edits;
      nearest = chip;
    }
  }
  return {ErrorCode::kNotFound, fmt::format("there is no chip `{}` in the catalogue of counters", word),
          fmt::format("{}Chips are {}.", nearest.empty() ? "" : fmt::format("Did you mean {}? ", nearest),
                      fmt::join(chips(), ", "))};
}

// The chip asked for, else the one of this machine; nullptr: neither.
Result<const Chip*> chip_of(const std::string& word) {
  if (word.empty()) {
    for (const hw::Device& device : hw::probe_gpus()) {
      if (const Chip* chip = chip_of_capability(device.chip)) return chip;
    }
    return nullptr;
  }
  if (const Chip* chip = find_chip(word)) return chip;
  return unknown_chip(word);
}

int show_raw(const Arguments& arguments, const Chip& chip, WantedMethod method) {
  Result<std::unique_ptr<HostLibrary>> library = HostLibrary::open();
  if (!library) {
    library.error().hint += " Without it, `llmprof counters` still lists our counters, their formulas and passes.";
    return fail(library.error());
  }
  const auto metrics = raw_metrics(**library, chip.name, arguments.get("--raw"), method);
  if (!metrics) return fail(metrics.error());
  if (arguments.on("--json")) {
    base::Json json = json_head("llmprof.counters");
    json["chip"] = {{"name", chip.name}};
    json["metrics"] = raw_json(*metrics);
    print(base::to_text(json));
  } else {
    print(raw_text(*metrics));
  }
  return 0;
}

int show_asked(const Arguments& arguments, const Chip& chip, WantedMethod method) {
  const Result<Selection> selection = select(fmt::format("{}", fmt::join(arguments.positionals, ",")));
  if (!selection) return fail(selection.error());
  const Result<std::unique_ptr<HostLibrary>> library = HostLibrary::open();
  const Asked asked{*selection, chip, method, library ? library->get() : nullptr};
  print(arguments.on("--json") ? base::to_text(asked_json(asked)) : asked_text(asked));
  return 0;
}

int run(const Arguments& arguments) {
  const Result<WantedMethod> method = method_of(arguments.get("--method"));
  if (!method) return fail(method.error());
  const Result<const Chip*> chip = chip_of(arguments.get("--chip"));
  if (!chip) return fail(chip.error());
  const bool raw = arguments.given("--raw"), named = !arguments.positionals.empty();
  if (raw && named) {
    return fail({ErrorCode::kUsage, "--raw and NAME ask for different things", "give one of them"});
  }
  if (*chip == nullptr) {
    if (!raw && !named && !*method) {
      print(arguments.on("--json") ? base::to_text(chips_json()) : chips_text());
      return 0;
    }
    return fail({ErrorCode::kUsage, "this machine has no GPU that the catalogue knows, so the chip is not known",
                 "Say which: --chip GH100, or a device that has it (--chip h200)."});
  }
  if (raw) return show_raw(arguments, **chip, *method);
  if (named) return show_asked(arguments, **chip, *method);
  print(arguments.on("--json") ? base::to_text(chip_json(**chip, *method)) : chip_text(**chip, *method));
  return 0;
}

}  // namespace
}  // namespace counters_verb

extern const Verb kCounters;
const Verb kCounters{"counters",
                     "list the hardware counters that can be recorded",
                     counters_verb::kOptions,
                     counters_verb::kPositionals,
                     false,
                     counters_verb::run};

}  // namespace llmprof::app
