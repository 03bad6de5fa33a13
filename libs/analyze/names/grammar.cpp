#include "analyze/names/grammar.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "analyze/names/range_words.h"
#include "base/asset.h"
#include "base/json.h"
#include "base/numbers.h"

namespace llmprof::analyze {

std::span<const base::Asset> assets();  // made by llmprof_embed_assets

namespace {

constexpr std::array<std::string_view, 16> kStages{
    "prefill", "decode",   "mixed",     "draft",    "verify",     "encode",     "load",    "warm-up",
    "forward", "backward", "optimizer", "training", "validation", "generation", "compile", "other"};

bool is_number(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

std::optional<RangeKind> kind_of(std::string_view text) {
  if (text == "stage") return RangeKind::kStage;
  if (text == "step") return RangeKind::kStep;
  if (text == "module") return RangeKind::kModule;
  return std::nullopt;
}

Result<RangePattern> parse_pattern(const base::Json& row, std::string_view where) {
  const auto text = [&](const char* key) {
    return row.contains(key) && row[key].is_string() ? row[key].get<std::string>() : "";
  };
  const std::optional<RangeKind> kind = kind_of(text("kind"));
  if (text("pattern").empty() || !kind || text("source").empty()) {
    return Error{ErrorCode::kCorruptInput,
                 std::string(where) + ": a row needs pattern, kind and source: " + base::to_line(row), ""};
  }
  RangePattern pattern{.pattern = text("pattern"), .kind = *kind, .stage = text("stage"), .source = text("source")};
  const bool inherits = *kind == RangeKind::kStage && pattern.stage.empty();  // the stage around it
  if (*kind != RangeKind::kModule && !inherits && known_stage(pattern.stage).empty()) {
    return Error{ErrorCode::kCorruptInput, std::string(where) + ": unknown stage in " + base::to_line(row), ""};
  }
  const auto container = row.find("container");
  pattern.batch_after = text("batch_after");
  pattern.container = container != row.end() && container->is_boolean() && container->get<bool>();
  return pattern;
}

StepSize size_in(std::string_view name, const RangePattern& pattern) {
  if (StepSize size = engine_step_size(name); size.batch) return size;
  const std::size_t at = pattern.batch_after.empty() ? std::string_view::npos : name.find(pattern.batch_after);
  if (at == std::string_view::npos) return {};
  const std::string_view digits = name.substr(at + pattern.batch_after.size());
  std::int64_t batch = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), batch);
  if (error != std::errc{} || batch <= 0) return {};
  return {.batch = batch, .tokens = 1, .context = {}};
}

}  // namespace

std::string_view known_stage(std::string_view name) {
  if (name == "warmup" || name == "warm_up") return "warm-up";
  const auto* const found = std::find(kStages.begin(), kStages.end(), name);
  return found == kStages.end() ? std::string_view{} : *found;
}

// A text that does not fit goes back to the last '*' only, which then takes one byte more: an earlier one could not do
// better. So the time is at most the product of the lengths.
bool matches(std::string_view pattern, std::string_view text) {
  std::size_t p = 0, t = 0, star = std::string_view::npos, taken = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      taken = t;
    } else if (p < pattern.size() && pattern[p] == text[t]) {
      ++p, ++t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++taken;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', p) == std::string_view::npos;
}

Result<std::vector<RangePattern>> parse_patterns(std::string_view json_text, std::string_view where) {
  LLMPROF_LET(const base::Json rows, base::parse_json(json_text, where));
  std::vector<RangePattern> patterns;
  if (!rows.is_array()) return Error{ErrorCode::kCorruptInput, std::string(where) + ": not an array of rows", ""};
  for (const base::Json& row : rows) {
    LLMPROF_LET(RangePattern pattern, parse_pattern(row, where));
    patterns.push_back(std::move(pattern));
  }
  return patterns;
}

Result<std::vector<RangePattern>> built_in_patterns() {
  return parse_patterns(base::find_asset(assets(), "range_patterns.json"), "range_patterns.json");
}

Meaning meaning_of(std::string_view name, std::string_view domain, std::string_view category,
                   const std::vector<RangePattern>& patterns) {
  const auto row = [&](bool users) -> const RangePattern* {
    for (const RangePattern& pattern : patterns) {
      if (pattern.users == users && matches(pattern.pattern, name)) return &pattern;
    }
    return nullptr;
  };
  if (const RangePattern* rule = row(true)) {
    const RangeKind kind = rule->container ? RangeKind::kStage : rule->kind;
    return {kind, rule->stage, kDeclaredConfidence, size_in(name, *rule), rule->source};
  }
  if (domain == "llmprof" && category == "pass") {
    const std::string_view stage = known_stage(name);
    return {RangeKind::kStep, std::string(stage.empty() ? "steps" : stage), kPassConfidence, {}, "the call of a model"};
  }
  if (domain == "llmprof") {
    const std::optional<RangeKind> kind = kind_of(category);
    if (!kind) return {};
    const bool staged = *kind != RangeKind::kModule;
    // A step whose sequences differ says their sums by its name, as engines do: a payload cannot.
    if (*kind == RangeKind::kStep && known_stage(name).empty()) {
      const RangePattern* known = row(false);
      if (const StepSize size = engine_step_size(name); known != nullptr && size.batch)
        return {*kind, std::string(known_stage(known->stage)), kDeclaredConfidence, size, "the program declares it"};
    }
    return {*kind, staged ? std::string(known_stage(name)) : "", kDeclaredConfidence, {}, "the program declares it"};
  }
  if (const RangePattern* known = row(false)) {
    const RangeKind kind = known->container ? RangeKind::kStage : known->kind;
    const StepSize size = size_in(name, *known);
    std::string stage(known_stage(known->stage));
    // An engine that generates several tokens of a sequence at once checks what was drafted.
    if (stage == "decode" && size.batch && size.rows && *size.rows > *size.batch) stage = "verify";
    return {kind, std::move(stage), kPatternConfidence, size,
            fmt::format("matches '{}' ({})", known->pattern, known->source)};
  }
  return meaning_by_words(name, domain);
}

StepSize unpack(std::optional<std::int64_t> payload) {
  const auto bits = static_cast<std::uint64_t>(payload.value_or(0));
  const auto field = [&](unsigned shift, std::uint64_t mask) -> std::optional<std::int64_t> {
    const auto value = static_cast<std::int64_t>(bits >> shift & mask);
    return value == 0 ? std::nullopt : std::optional(value);
  };
  return {field(0, 0xFFFF), field(16, 0xFFFFFF), field(40, 0xFFFFFF)};
}

std::string module_path(std::string_view outer, std::string_view name) {
  for (const std::string_view root : {"model.", "transformer."}) {  // names of the whole, not of a part
    if (outer.empty() && name.size() > root.size() && name.starts_with(root)) name.remove_prefix(root.size());
  }
  if (outer.empty() || name == outer) return std::string(name);
  if (name.size() > outer.size() && name.starts_with(outer) && name[outer.size()] == '.') return std::string(name);
  return std::string(outer) + "." + std::string(name);
}

std::string operator_of(std::string_view module) {
  std::size_t after = 0;  // first byte behind the last numeric component
  std::size_t numeric_begin = 0;
  for (std::size_t begin = 0; begin <= module.size();) {
    const std::size_t dot = std::min(module.find('.', begin), module.size());
    if (is_number(module.substr(begin, dot - begin))) {
      numeric_begin = begin;
      after = dot + 1;
    }
    begin = dot + 1;
  }
  if (after == 0) return std::string(module);
  if (after < module.size()) return std::string(module.substr(after));
  const std::string_view head = module.substr(0, numeric_begin == 0 ? 0 : numeric_begin - 1);
  return head.empty() ? std::string(module) : operator_of(head);
}

// Names that serving engines give to their steps: how many sequences, new tokens and contexts were in one.

namespace {

// The number behind `key`, 0 and more.
std::optional<std::int64_t> number_after(std::string_view text, std::string_view key) {
  const std::size_t at = text.find(key);
  if (at == std::string_view::npos) return std::nullopt;
  const std::optional<std::int64_t> value = base::leading_number<std::int64_t>(text.substr(at + key.size()));
  constexpr std::int64_t kMost = std::int64_t{1} << 52;
  return value && *value >= 0 && *value <= kMost ? value : std::nullopt;
}

struct Sums {  // over the sequences of a kind
  std::optional<std::int64_t> sequences, tokens;
  std::optional<std::int64_t> contexts, tokens_squared, tokens_by_context;  // engines say these where they are asked to
};

// "64(64)", "2(sq107sk107sqsq5729sqsk5729)".
Sums read_vllm(std::string_view text) {
  Sums sums{.sequences = number_after(text, "")};
  const std::size_t open = text.find('('), close = text.find(')');
  if (open == std::string_view::npos || close == std::string_view::npos || close < open) return sums;
  const std::string_view inside = text.substr(open, close - open);
  sums.tokens = inside.starts_with("(sq") ? number_after(inside, "(sq") : number_after(inside, "(");
  sums.tokens_squared = number_after(inside, "sqsq");
  sums.tokens_by_context = number_after(inside, "sqsk");
  const std::size_t contexts = inside.find("sk");  // "sk", not that of "sqsk"
  if (contexts != std::string_view::npos && contexts > 0 && inside[contexts - 1] != 'q')
    sums.contexts = number_after(inside.substr(contexts), "sk");
  return sums;
}

std::optional<std::int64_t> plus(std::optional<std::int64_t> a, std::optional<std::int64_t> b) {
  return a && b ? std::optional(*a + *b) : std::nullopt;
}

// Each new token sees those before it: n queries and c keys make n c - n (n - 1) / 2 pairs.
std::optional<std::int64_t> pairs_of(const Sums& sums) {
  if (sums.tokens == 0) return 0;
  if (!sums.tokens || !sums.tokens_squared || !sums.tokens_by_context) return std::nullopt;
  return *sums.tokens_by_context - (*sums.tokens_squared - *sums.tokens) / 2;
}

StepSize size_of(Sums prompts, Sums generation) {
  for (Sums* sums : {&prompts, &generation}) {
    if (sums->sequences == 0) *sums = {.sequences = 0, .tokens = 0, .contexts = 0};
  }
  StepSize size;
  size.batch = plus(prompts.sequences, generation.sequences);
  size.rows = plus(prompts.tokens, generation.tokens);
  if (!size.batch || !size.rows || *size.batch <= 0 || *size.rows < *size.batch) return {};
  size.contexts = size.contexts_most = plus(prompts.contexts, generation.contexts);
  if (!size.contexts) size.contexts = size.rows;  // at least what is new
  size.pairs = plus(pairs_of(prompts), pairs_of(generation));
  if (size.pairs && *size.pairs < *size.rows) size.pairs.reset();
  if (generation.sequences == generation.tokens) size.generating = generation.sequences;
  if (*size.rows == *size.batch) size.tokens = 1;
  return size;
}

}  // namespace

StepSize engine_step_size(std::string_view name) {
  if (name.starts_with("execute_")) {
    constexpr std::string_view kContext = "context_", kGeneration = "_generation_";
    const std::size_t context = name.find(kContext), generation = name.find(kGeneration);
    if (context == std::string_view::npos || generation == std::string_view::npos || generation < context) return {};
    return size_of(read_vllm(name.substr(context + kContext.size(), generation - context - kContext.size())),
                   read_vllm(name.substr(generation + kGeneration.size())));
  }
  if (!name.starts_with("step[")) return {};
  const std::optional<std::int64_t> sequences = number_after(name, " bs=");
  const auto detailed = [&](char kind) {
    const auto of = [&](std::string_view sum) {
      return number_after(name, " " + std::string(1, kind) + "_" + std::string(sum));
    };
    return Sums{{}, of("sq="), of("sk="), of("sqsq="), of("sqsk=")};
  };
  if (name.starts_with("step[DECODE")) {
    Sums generation = detailed('g');
    generation.sequences = generation.tokens = sequences;
    return size_of({.sequences = 0}, generation);
  }
  Sums prompts = detailed('c'), generation = detailed('g');
  if (generation.tokens.value_or(0) > 0) {  // one new token each
    generation.sequences = generation.tokens;
    prompts.sequences = sequences ? std::optional(*sequences - *generation.tokens) : std::nullopt;
    if (prompts.sequences.value_or(0) < 0) return {};
    return size_of(prompts, generation);
  }
  prompts.sequences = sequences;
  if (!prompts.tokens) prompts.tokens = number_after(name, " toks=");
  return size_of(prompts, {.sequences = 0});
}

}  // namespace llmprof::analyze
