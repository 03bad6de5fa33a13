#include "record/watch/counter_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>

#include "base/file.h"
#include "base/human.h"
#include "hw/counters/catalog.h"
#include "record/run/capture.h"

namespace llmprof::record {
namespace {

constexpr double kOnePass = 0.015, kManyPasses = 0.04;
constexpr std::size_t kMostPatterns = 256;   // that a collector reads
constexpr std::size_t kMostNameBytes = 256;  // of a name that it only repeats; arguments of templates may fill pages

Error usage(std::string message, std::string hint) { return {ErrorCode::kUsage, std::move(message), std::move(hint)}; }

hw::counters::Method catalog_method(CounterMethod method) {
  return method == CounterMethod::kKernel    ? hw::counters::Method::kKernel
         : method == CounterMethod::kSampled ? hw::counters::Method::kSampled
                                             : hw::counters::Method::kRange;
}

std::string_view stall_word(StallMode mode) {
  return mode == StallMode::kWith ? "with" : mode == StallMode::kOnly ? "only" : "off";
}

std::string limit_text(double budget) {
  return budget > 0 ? fmt::format("at most {:g} % of the program's time", budget * 100) : "without a limit on its time";
}

std::vector<std::string> names_of(const std::vector<NamedKernel>& kernels) {
  std::vector<std::string> names;
  for (const NamedKernel& kernel : kernels) names.push_back(kernel.name);
  return names;
}

std::vector<std::string> patterns_of(const std::vector<NamedKernel>& kernels) {
  std::vector<std::string> patterns;
  for (const NamedKernel& kernel : kernels)
    patterns.insert(patterns.end(), kernel.patterns.begin(), kernel.patterns.end());
  return patterns;
}

std::string some(const std::vector<std::string>& patterns) {
  std::string text;
  for (std::size_t i = 0; i < std::min<std::size_t>(patterns.size(), 3); ++i) {
    text += (i == 0 ? "" : ", ") + patterns[i];
  }
  return patterns.size() > 3 ? fmt::format("{} and {} more", text, patterns.size() - 3) : text;
}

Result<void> check_patterns(const std::vector<std::string>& patterns, std::string_view what) {
  if (patterns.size() > kMostPatterns) {
    return usage(fmt::format("{} patterns of {}; {} can be told apart", patterns.size(), what, kMostPatterns),
                 "name fewer, or several with *");
  }
  for (const std::string& pattern : patterns) {
    if (pattern.empty() || pattern.find('\n') != std::string::npos) {
      return usage(fmt::format("a pattern of {} is empty or has several lines", what), "");
    }
  }
  return {};
}

Result<void> check_stalls(const CounterOptions& options) {
  if (options.stalls == StallMode::kOff || options.set.empty()) return {};
  return usage("--stalls and --counters both read the device's counters", "record twice, once with each");
}

Result<void> check_method(const CounterOptions& options) {
  const CounterMethod method = method_of(options);
  if (!options.kernels.empty() && method != CounterMethod::kKernel) {
    return usage(fmt::format("kernels are named, and the method is {}", name_of(method)),
                 "kernels are measured one by one with --counters-method kernel");
  }
  if (method == CounterMethod::kKernel && options.kernels.empty()) {
    return usage("--counters-method kernel measures kernels one by one: which?",
                 "name them with --counters-kernels PATTERNS, or --counters-hot N --counters-from RUN");
  }
  if (!options.ranges.empty() && options.own_ranges && method != CounterMethod::kRange) {
    return usage(fmt::format("ranges are named, and the method is {}", name_of(method)),
                 "ranges are measured with --counters-method range");
  }
  if (options.replay && method != CounterMethod::kKernel) {
    return usage("--replay executes kernels again, and only single kernels can be",
                 "use it with --counters-kernels or --counters-hot");
  }
  return {};
}

void add_lines(std::string& text, std::string_view word, const std::vector<std::string>& values) {
  for (const std::string& value : values) text += fmt::format("{} {}\n", word, value);
}

}  // namespace

CounterMethod method_of(const CounterOptions& options) {
  if (options.method != CounterMethod::kAutomatic) return options.method;
  return options.kernels.empty() ? CounterMethod::kRange : CounterMethod::kKernel;
}

std::string_view name_of(CounterMethod method) {
  return method == CounterMethod::kKernel ? "kernel" : method == CounterMethod::kSampled ? "sampled" : "range";
}

double default_budget(const std::string& set) {
  const auto selection = hw::counters::select(set);
  const hw::counters::Set* light = hw::counters::find_set("light");
  if (!selection || light == nullptr || !selection->raw.empty()) return kManyPasses;
  const bool one_pass = std::all_of(selection->counters.begin(), selection->counters.end(), [&](const auto* counter) {
    return std::find(light->counters.begin(), light->counters.end(), counter->name) != light->counters.end();
  });
  return one_pass ? kOnePass : kManyPasses;
}

Result<void> check(const CounterOptions& options) {
  if (!options.any()) return {};
  LLMPROF_TRY(check_stalls(options));
  if (options.set.empty()) return {};
  if (const auto selection = hw::counters::select(options.set); !selection) return selection.error();
  LLMPROF_TRY(check_method(options));
  if (!(options.budget >= 0 && options.budget <= 1)) {
    return usage("the budget of counters is not between 0 and 100 %", "0 sets no limit");
  }
  if (method_of(options) == CounterMethod::kSampled &&
      (options.period < std::chrono::microseconds(100) || options.period > std::chrono::milliseconds(10))) {
    return usage("--counters-period is not between 100us and 10ms", "the default is 1ms");
  }
  LLMPROF_TRY(check_patterns(options.ranges, "ranges"));
  LLMPROF_TRY(check_patterns(names_of(options.kernels), "kernels"));
  return check_patterns(patterns_of(options.kernels), "kernels");
}

std::string describe(const CounterOptions& options) {
  if (!options.any()) return "";
  if (options.set.empty()) {
    return options.stalls == StallMode::kOnly ? "where warps wait and why, sampled; kernels are not recorded"
                                              : "where warps wait and why, sampled";
  }
  const CounterMethod method = method_of(options);
  const std::string head = fmt::format("set {}, {} method", options.set, name_of(method));
  if (method == CounterMethod::kSampled) {
    return fmt::format("{}: every {} from outside the program", head,
                       base::human_ns(static_cast<double>(options.period.count())));
  }
  if (method == CounterMethod::kKernel) {
    return fmt::format("{}: launches of {}{}, {}", head, some(names_of(options.kernels)),
                       options.replay ? ", executed again for every pass" : "", limit_text(options.budget));
  }
  const std::string what = options.own_ranges ? "range " + some(options.ranges) : "step or stage";
  return fmt::format("{}: one window per {}, {}", head, what, limit_text(options.budget));
}

std::optional<trace::AskedCounters> asked(const CounterOptions& options) {
  if (!options.any()) return std::nullopt;
  trace::AskedCounters asked;
  asked.set = options.set;
  if (!options.set.empty()) asked.method = name_of(method_of(options));
  if (asked.method == "sampled") asked.period_ns = options.period.count();
  if (asked.method == "range" || asked.method == "kernel") asked.budget = options.budget;
  asked.replay = options.replay;
  if (options.stalls != StallMode::kOff) asked.stalls = stall_word(options.stalls);
  return asked;
}

bool needs_plan(const CounterOptions& options) {
  return options.stalls != StallMode::kOff || (!options.set.empty() && method_of(options) != CounterMethod::kSampled);
}

Result<std::string> plan_text(const CounterOptions& options) {
  const CounterMethod method = method_of(options);
  const bool counts = !options.set.empty() && method != CounterMethod::kSampled;
  std::string text = "llmprof counters 1\n";
  text += fmt::format("method {}\n", counts ? name_of(method) : "none");
  text += fmt::format("budget_ppm {}\n", std::llround(options.budget * 1e6));
  text += fmt::format("stalls {}\n", stall_word(options.stalls));
  text += fmt::format("replay {}\n", options.replay ? 1 : 0);
  if (!counts) return text;
  add_lines(text, "range", options.ranges);
  for (const NamedKernel& kernel : options.kernels) {
    text += fmt::format("named {}\n", kernel.name.substr(0, kMostNameBytes));
    add_lines(text, "kernel", kernel.patterns);
  }
  LLMPROF_LET(const hw::counters::Selection selection, hw::counters::select(options.set));
  for (const std::string_view chip : hw::counters::chips()) {
    const auto metrics = hw::counters::metrics_of(selection, chip, catalog_method(method));
    add_lines(text, fmt::format("metric {}", chip), metrics.metrics);
  }
  return text;
}

Result<void> write_counter_plan(const std::string& capture_folder, const CounterOptions& options) {
  LLMPROF_LET(const std::string text, plan_text(options));
  return base::write_file(capture_folder + "/" + kPlanFile, text);
}

namespace {

// An identifier as it stands in a mangled name: with its length in front, if it is whole.
struct Word {
  std::string_view text;
  bool whole = true;       // no wildcard touches it
  bool template_ = false;  // its arguments follow
};

bool is_part(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '$'; }
bool is_wild(char c) { return c == '*' || c == '?'; }
int bracket(char c) { return c == '(' || c == '{' || c == '[' ? 1 : c == ')' || c == '}' || c == ']' ? -1 : 0; }

// Words that are mangled to single letters, or to nothing.
bool is_builtin(std::string_view word) {
  constexpr std::array kBuiltin{std::string_view("void"),  std::string_view("bool"),     std::string_view("char"),
                                std::string_view("int"),   std::string_view("short"),    std::string_view("long"),
                                std::string_view("float"), std::string_view("double"),   std::string_view("signed"),
                                std::string_view("true"),  std::string_view("false"),    std::string_view("const"),
                                std::string_view("std"),   std::string_view("unsigned"), std::string_view("volatile"),
                                std::string_view("auto"),  std::string_view("decltype"), std::string_view("operator")};
  return std::find(kBuiltin.begin(), kBuiltin.end(), word) != kBuiltin.end();
}

// In the order of the text. What brackets hold (parameters of functions, lambdas, casts) is mangled otherwise, and much
// of `std` has abbreviations.
std::vector<Word> words_of(std::string_view name, bool wildcards) {
  std::vector<Word> words;
  int depth = 0;
  for (std::size_t i = 0; i < name.size(); ++i) {
    depth += bracket(name[i]);
    if (depth > 0 || !is_part(name[i])) continue;
    std::size_t end = i;
    while (end < name.size() && is_part(name[end])) ++end;
    const std::string_view text = name.substr(i, end - i);
    const bool number = std::isdigit(static_cast<unsigned char>(text[0])) != 0;
    const bool touched = (i > 0 && is_wild(name[i - 1])) || (end < name.size() && is_wild(name[end]));
    const bool open = wildcards && touched;  // else it is the * of a pointer
    const bool of_std = name.substr(0, i).ends_with("std::");
    const bool again = std::any_of(words.begin(), words.end(), [&](const Word& word) { return word.text == text; });
    if (!of_std && !again && (open || !number) && !is_builtin(text)) {
      words.push_back({text, !open, end < name.size() && name[end] == '<'});
    }
    i = end - 1;
  }
  return words;
}

std::string mangled(const Word& word) {
  return word.whole ? fmt::format("{}{}{}", word.text.size(), word.text, word.template_ ? "I" : "")
                    : std::string(word.text);
}

}  // namespace

std::vector<std::string> mangled_patterns(std::string_view name, bool wildcards) {
  if (name.starts_with("_Z")) return {std::string(name)};
  const bool plain = name.find_first_of("<({ ") == std::string_view::npos && name.find("::") == std::string_view::npos;
  std::vector<std::string> patterns;
  if (plain) patterns.emplace_back(name);  // no C++: Triton's, extern "C"
  const std::vector<Word> words = words_of(name, wildcards);
  if (words.empty() || (plain && wildcards && is_wild(name.front()) && is_wild(name.back()))) {
    if (patterns.empty()) patterns.emplace_back("*");
    return patterns;
  }
  std::string rest;
  for (std::size_t i = 1; i < words.size(); ++i) rest += "*" + mangled(words[i]);
  // A name outside of namespaces stands at the begin, behind an L if it is of one file only.
  const bool at_begin = words[0].whole && name.find("::") >= name.find('<') && name.starts_with(words[0].text);
  if (!at_begin) {
    patterns.push_back(fmt::format("_Z*{}{}*", mangled(words[0]), rest));
  } else {
    patterns.push_back(fmt::format("_Z{}{}*", mangled(words[0]), rest));
    patterns.push_back(fmt::format("_ZL{}{}*", mangled(words[0]), rest));
  }
  return patterns;
}

std::vector<std::string> split_names(std::string_view text) {
  std::vector<std::string> names;
  std::string name;
  int depth = 0;
  const auto take = [&] {
    const std::size_t begin = name.find_first_not_of(' '), end = name.find_last_not_of(' ');
    if (begin != std::string::npos) names.push_back(name.substr(begin, end - begin + 1));
    name.clear();
  };
  for (const char c : text) {
    depth += c == '<' ? 1 : c == '>' ? -1 : bracket(c);
    if (c == ',' && depth <= 0) {
      take();
    } else {
      name += c;
    }
  }
  take();
  return names;
}

}  // namespace llmprof::record
