#include "analyze/names/range_words.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>

namespace llmprof::analyze {

namespace {

using Words = std::vector<std::string>;

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_upper(char c) { return c >= 'A' && c <= 'Z'; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || is_upper(c); }

// XLA's names carry keys: "XlaModule:#hlo_module=jit_step,program_id=3#".
std::string_view value_of(std::string_view name, std::string_view key) {
  const std::size_t at = name.find(key);
  if (at == std::string_view::npos) return {};
  const std::string_view rest = name.substr(at + key.size());
  return rest.substr(0, rest.find_first_of(",#"));
}

std::string_view called(std::string_view name) {
  for (const std::string_view key : {"#hlo_module=", "hlo_op="}) {
    if (const std::string_view value = value_of(name, key); !value.empty()) return value;
  }
  const std::size_t keys = name.find(":#");
  return keys == std::string_view::npos || keys == 0 ? name : name.substr(0, keys);
}

Words words_of(std::string_view text) {
  Words words;
  bool open = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (!is_letter(text[i])) {
      open = false;
      continue;
    }
    const bool next_small = i + 1 < text.size() && is_letter(text[i + 1]) && !is_upper(text[i + 1]);
    const bool hump = is_upper(text[i]) && i > 0 && is_letter(text[i - 1]) && (!is_upper(text[i - 1]) || next_small);
    if (!open || hump) words.emplace_back();
    open = true;
    words.back() += static_cast<char>(std::tolower(static_cast<unsigned char>(text[i])));
  }
  return words;
}

template <std::size_t N>
bool any_of(const Words& words, const std::array<std::string_view, N>& of) {
  return std::ranges::any_of(words, [&](const std::string& word) { return std::ranges::find(of, word) != of.end(); });
}

constexpr std::array<std::string_view, 7> kStepWords{"step",  "steps",      "iter",   "iteration",
                                                     "batch", "microbatch", "request"};
constexpr std::array<std::string_view, 6> kBlockWords{"layer", "layers", "block", "blocks", "h", "blk"};
// Parts of a model: "layernorm_forward" is not a pass over it.
constexpr std::array<std::string_view, 44> kPartWords{
    "layernorm", "rmsnorm",    "norm",     "attention", "attn",   "matmul",  "gemm",    "linear",     "mlp",
    "ffn",       "gelu",       "relu",     "silu",      "swiglu", "softmax", "embed",   "embedding",  "embeddings",
    "encoder",   "decoder",    "rope",     "rotary",    "conv",   "dropout", "loss",    "classifier", "head",
    "proj",      "projection", "residual", "bias",      "add",    "mul",     "kernel",  "layer",      "layers",
    "block",     "blocks",     "aten",     "autograd",  "moe",    "expert",  "experts", "reduce"};
constexpr std::array<std::string_view, 3> kWholeWords{"model", "causal", "network"};  // "GPT2LMHeadModel"
constexpr std::array<std::string_view, 3> kTrain{"train", "training", "trainer"};
constexpr std::array<std::string_view, 2> kForward{"forward", "fwd"};
constexpr std::array<std::string_view, 4> kBackward{"backward", "bwd", "backprop", "backpropagation"};
constexpr std::array<std::string_view, 6> kOptimizer{"optimizer", "optim", "adam", "adamw", "sgd", "lion"};
constexpr std::array<std::string_view, 1> kUpdate{"update"};
constexpr std::array<std::string_view, 2> kPrefill{"prefill", "prefilling"};
constexpr std::array<std::string_view, 2> kDecode{"decode", "decoding"};
constexpr std::array<std::string_view, 6> kValidation{"validation", "validate",   "eval",
                                                      "evaluate",   "evaluation", "val"};
constexpr std::array<std::string_view, 3> kGeneration{"generation", "generate", "generating"};
constexpr std::array<std::string_view, 5> kCompile{"compile", "compiling", "compilation", "autotune", "autotuning"};
constexpr std::array<std::string_view, 2> kLoad{"load", "loading"};
constexpr std::array<std::string_view, 5> kLoaded{"model", "weights", "checkpoint", "params", "parameters"};
constexpr std::array<std::string_view, 2> kWarmUp{"warmup", "warming"};

Meaning step(std::string_view stage, std::string_view why) {
  return {.kind = RangeKind::kStep,
          .stage = std::string(stage),
          .confidence = kWordConfidence,
          .size = {},
          .why = std::string(why)};
}

bool is_xla_compilation(std::string_view name) {
  for (const std::string_view begin :
       {"XlaCompile", "XlaPass", "XlaEmit", "XlaOptimize", "XlaCreateGpuExecutable", "XlaMemoryScheduler"}) {
    if (name.starts_with(begin)) return true;
  }
  return false;
}

}  // namespace

RangeName read_name(std::string_view name) {
  RangeName out;
  const std::string_view own = called(name);
  std::size_t digits = std::string_view::npos;  // the last number that stands by itself
  for (std::size_t i = 0; i < own.size(); ++i) {
    if (is_digit(own[i]) && (i == 0 || (!is_digit(own[i - 1]) && !is_letter(own[i - 1])))) digits = i;
  }
  out.label = std::string(own);
  if (digits != std::string_view::npos) {
    std::int64_t number = 0;
    const auto [end, error] = std::from_chars(own.data() + digits, own.data() + own.size(), number);
    const auto behind = static_cast<std::size_t>(end - own.data());
    if (error == std::errc{} && (behind == own.size() || !is_letter(own[behind]))) {
      out.number = number;
      std::size_t head = digits;
      while (head > 0 && !is_letter(own[head - 1]) && !is_digit(own[head - 1])) --head;
      const std::string_view tail = behind < own.size() ? own.substr(behind) : std::string_view{};
      out.label = std::string(own.substr(0, head));
      if (std::ranges::any_of(tail, is_letter)) out.label += std::string(tail);
    }
  }
  out.words = words_of(out.label);
  return out;
}

std::string shape_of(std::string_view name) {
  std::string shape;
  for (const char c : name) {
    if (!is_digit(c)) {
      shape += c;
    } else if (shape.empty() || shape.back() != '#') {
      shape += '#';
    }
  }
  return shape;
}

Meaning meaning_by_words(std::string_view name, std::string_view domain) {
  if (is_xla_compilation(name)) return step("compile", "XLA's name of a part of its compiler");
  const RangeName read = read_name(name);
  const Words& words = read.words;
  if (name.starts_with("XlaModule:#hlo_module=")) return {};  // a program that was compiled: its surroundings tell
  if (domain == "TSL" || words.empty() || words.size() > 6) return {};
  if (std::string block = block_path(name); !block.empty()) {
    return {
        .kind = RangeKind::kModule, .stage = "", .confidence = kWordConfidence, .size = {}, .why = "a numbered block"};
  }
  const bool part = any_of(words, kPartWords) && !any_of(words, kWholeWords);
  const bool forward = any_of(words, kForward), backward = any_of(words, kBackward);
  if (any_of(words, kTrain) && any_of(words, kStepWords)) {
    return {.kind = RangeKind::kStage,
            .stage = "training",
            .confidence = kWordConfidence,
            .size = {},
            .why = "'" + words.front() + "' and a word for a step: a training step around its passes"};
  }
  if (forward && backward) return {};  // both: neither can be told
  if (backward && (!part || any_of(words, std::array<std::string_view, 2>{"reduce", "loss"})))
    return step("backward", "'backward' in its name");
  if (part) return {};
  if (forward) return step("forward", "'forward' in its name");
  if (any_of(words, kOptimizer)) return step("optimizer", "the name of an optimizer in it");
  if (any_of(words, kUpdate))
    return step("update", "'update' in its name, an optimizer where there is a backward pass");
  if (any_of(words, kPrefill)) return step("prefill", "'prefill' in its name");
  if (any_of(words, kDecode)) return step("decode", "'decode' in its name");
  if (any_of(words, kValidation)) return step("validation", "a word for validation in its name");
  if (any_of(words, kGeneration)) return step("generation", "a word for generation in its name");
  if (any_of(words, kCompile)) return step("compile", "a word for compilation in its name");
  if (any_of(words, kWarmUp)) return step("warm-up", "a word for warming up in its name");
  if (any_of(words, kLoad) && any_of(words, kLoaded)) return step("load", "a word for loading and what is loaded");
  return {};
}

std::string block_path(std::string_view name) {
  const RangeName read = read_name(name);
  if (!read.number || read.words.empty() || read.words.size() > 4) return "";
  // The number stands behind the word for a block, and nothing behind the number.
  if (!is_digit(name.back()) || std::ranges::find(kBlockWords, read.words.back()) == kBlockWords.end()) return "";
  if (name.size() > read.label.size() && name[read.label.size()] == '.') return std::string(name);
  return read.label + "." + std::to_string(*read.number);
}

Direction direction_of(std::string_view name) {
  const Words words = read_name(name).words;
  const bool forward = any_of(words, kForward), backward = any_of(words, kBackward);
  if (forward == backward) return Direction::kNeither;
  return forward ? Direction::kForward : Direction::kBackward;
}

bool is_step_word(const RangeName& name) { return any_of(name.words, kStepWords); }

bool can_be_step(const RangeName& name) {
  if (name.words.empty()) return false;
  return !any_of(name.words, kPartWords) || any_of(name.words, kStepWords);
}

}  // namespace llmprof::analyze
