#include "load/text_steps.h"

#include <fmt/format.h>

#include <array>
#include <nlohmann/json.hpp>

#include "base/errors.h"
#include "load/unicode.h"

namespace llmprof::load {
namespace {

// The pattern that "ByteLevel" has built in: that of GPT-2.
constexpr std::string_view kGpt2 = R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

// GPT-2 writes bytes as characters that can be seen: the visible ones of Latin-1 stand for themselves, the others for
// those from U+0100 on.
const std::array<std::string, 256>& byte_characters() {
  static const std::array<std::string, 256> table = [] {
    std::array<std::string, 256> made;
    char32_t next = 0x100;
    for (std::size_t byte = 0; byte < made.size(); ++byte) {
      const bool visible = (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
      append_utf8(visible ? static_cast<char32_t>(byte) : next++, made[byte]);
    }
    return made;
  }();
  return table;
}

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  std::string out;
  std::size_t at = 0;
  for (std::size_t found; (found = text.find(from, at)) != std::string::npos; at = found + from.size())
    out.append(text, at, found - at).append(to);
  text = out.append(text, at);
}

// {"String": text} or {"Regex": pattern}.
Result<SplitPattern> pattern_of(const TokenizerJson& json, const char* what) {
  const auto found = json.find("pattern");
  if (found == json.end() || !found->is_object()) return corrupt_error("a {} without a pattern", what);
  if (found->contains("Regex")) return SplitPattern::parse(text_of(*found, "Regex"));
  const std::string text = text_of(*found, "String");
  if (text.empty()) return corrupt_error("a {} with an empty pattern", what);
  return SplitPattern::literal(text);
}

// The steps of a "Sequence", else the one.
Result<std::vector<const TokenizerJson*>> steps_of(const TokenizerJson& json, const char* list) {
  if (json.is_null()) return std::vector<const TokenizerJson*>{};
  if (!json.is_object()) return corrupt_error("a step that is not an object");
  if (text_of(json, "type") != "Sequence") return std::vector{&json};
  const auto found = json.find(list);
  if (found == json.end() || !found->is_array()) return corrupt_error("a Sequence without \"{}\"", list);
  std::vector<const TokenizerJson*> steps;
  for (const TokenizerJson& each : *found) {
    if (!each.is_object()) return corrupt_error("a step that is not an object");
    steps.push_back(&each);
  }
  return steps;
}

}  // namespace

bool flag_of(const TokenizerJson& json, const char* key, bool fallback) {
  const auto found = json.find(key);
  return found != json.end() && found->is_boolean() ? found->get<bool>() : fallback;
}

std::string text_of(const TokenizerJson& json, const char* key) {
  const auto found = json.find(key);
  return found != json.end() && found->is_string() ? found->get<std::string>() : std::string();
}

Error refused_step(const char* what, const std::string& name) {
  return {ErrorCode::kUnsupported,
          fmt::format("the {} \"{}\" is not among those that llmprof follows exactly", what, name),
          "give the counts in the data set, or let the server count"};
}

Result<Normalizer> Normalizer::read(const TokenizerJson& json) {
  LLMPROF_LET(const auto steps, steps_of(json, "normalizers"));
  Normalizer out;
  for (const TokenizerJson* step : steps) {
    const std::string type = text_of(*step, "type");
    if (type == "NFC") {
      out.steps_.push_back({Kind::kCompose, "", {}});
    } else if (type == "Prepend") {
      out.steps_.push_back({Kind::kPrepend, text_of(*step, "prepend"), {}});
    } else if (type == "Replace") {
      LLMPROF_LET(SplitPattern pattern, pattern_of(*step, "normalizer"));
      out.steps_.push_back({Kind::kReplace, text_of(*step, "content"), std::move(pattern)});
    } else {
      return refused_step("normalizer", type);
    }
  }
  return out;
}

bool Normalizer::prepends() const {
  for (const Step& step : steps_) {
    if (step.kind == Kind::kPrepend) return true;
  }
  return false;
}

std::string Normalizer::apply(std::string text) const {
  for (const Step& step : steps_) {
    if (text.empty()) return text;
    if (step.kind == Kind::kCompose) {
      text = composed(text);
    } else if (step.kind == Kind::kPrepend) {
      text.insert(0, step.text);
    } else {
      const std::u32string codes = decode_utf8(text);
      std::string replaced;
      std::size_t at = 0;
      for (const SplitPattern::Match& match : step.pattern.matches(codes)) {
        replaced += encode_utf8(std::u32string_view(codes).substr(at, match.begin - at)) + step.text;
        at = match.end;
      }
      text = replaced + encode_utf8(std::u32string_view(codes).substr(at));
    }
  }
  return text;
}

Result<PreTokenizer> PreTokenizer::read(const TokenizerJson& json, bool normalizer_prepends) {
  LLMPROF_LET(const auto steps, steps_of(json, "pretokenizers"));
  PreTokenizer out;
  for (const TokenizerJson* step : steps) LLMPROF_TRY(out.add(*step, normalizer_prepends));
  return out;
}

Result<void> PreTokenizer::add(const TokenizerJson& json, bool normalizer_prepends) {
  const std::string type = text_of(json, "type");
  if (type == "Split") return add_split(json);
  if (type == "Metaspace") return add_metaspace(json, normalizer_prepends);
  Step step;
  if (type == "ByteLevel") {
    step.bytes = true;
    if (flag_of(json, "add_prefix_space", true)) step.prefix = " ";
    step.splits = flag_of(json, "use_regex", true);
    if (step.splits) {
      LLMPROF_LET(step.pattern, SplitPattern::parse(kGpt2));
    }
  } else if (type == "Digits") {
    step.splits = true;
    step.behavior = flag_of(json, "individual_digits", false) ? Behavior::kIsolated : Behavior::kContiguous;
    LLMPROF_LET(step.pattern, SplitPattern::parse("\\p{N}"));
  } else {
    return refused_step("pre-tokenizer", type);
  }
  steps_.push_back(std::move(step));
  return {};
}

Result<void> PreTokenizer::add_split(const TokenizerJson& json) {
  constexpr std::array<std::string_view, 5> kNames{"Removed", "Isolated", "MergedWithPrevious", "MergedWithNext",
                                                   "Contiguous"};
  Step step;
  step.splits = true;
  LLMPROF_LET(step.pattern, pattern_of(json, "Split"));
  step.invert = flag_of(json, "invert", false);
  const std::string name = text_of(json, "behavior");
  for (std::size_t i = 0; i < kNames.size(); ++i) {
    if (name != kNames[i]) continue;
    step.behavior = static_cast<Behavior>(i);
    steps_.push_back(std::move(step));
    return {};
  }
  return refused_step("behavior of Split", name);
}

Result<void> PreTokenizer::add_metaspace(const TokenizerJson& json, bool normalizer_prepends) {
  Step step;
  step.space = text_of(json, "replacement");
  if (decode_utf8(step.space).size() != 1) return corrupt_error("a Metaspace whose replacement is not one character");
  std::string scheme = text_of(json, "prepend_scheme");
  if (scheme.empty()) scheme = flag_of(json, "add_prefix_space", true) ? "always" : "never";
  if (scheme != "always" && scheme != "never" && scheme != "first") return refused_step("prepend_scheme", scheme);
  step.prefix_first = scheme == "first";
  // What was put in front has no place in the text, so "first" would hold for what follows as well.
  if (step.prefix_first && (normalizer_prepends || !steps_.empty()))
    return refused_step("order of steps", "Metaspace for the first piece behind others");
  if (scheme != "never") step.prefix = step.space;
  step.splits = flag_of(json, "split", true);
  step.pattern = SplitPattern::literal(step.space);
  step.behavior = Behavior::kWithNext;
  steps_.push_back(std::move(step));
  return {};
}

std::vector<Piece> PreTokenizer::apply(Piece piece) const {
  std::vector<Piece> pieces;
  pieces.push_back(std::move(piece));
  for (const Step& step : steps_) {
    std::vector<Piece> next;
    for (Piece& each : pieces) run(step, std::move(each), next);
    pieces = std::move(next);
  }
  return pieces;
}

void PreTokenizer::run(const Step& step, Piece piece, std::vector<Piece>& out) {
  struct Part {
    std::size_t begin, end;
    bool match;
  };
  if (!step.space.empty()) replace_all(piece.text, " ", step.space);
  if (!step.prefix.empty() && piece.text.compare(0, step.prefix.size(), step.prefix) != 0 &&
      (piece.first || !step.prefix_first))
    piece.text.insert(0, step.prefix);
  const std::u32string text = decode_utf8(piece.text);
  std::vector<Part> parts;
  const auto join = [&](Part part) {
    const bool same = !parts.empty() && step.behavior == Behavior::kContiguous && parts.back().match == part.match;
    const bool behind = !parts.empty() && step.behavior == Behavior::kWithPrevious && part.match && !parts.back().match;
    // A match goes to what follows it, if that is none.
    const bool before = !parts.empty() && step.behavior == Behavior::kWithNext && parts.back().match && !part.match;
    if (same || behind || before) {
      parts.back().end = part.end;
      parts.back().match = part.match || behind;
    } else if (part.begin < part.end && !(step.behavior == Behavior::kRemoved && part.match)) {
      parts.push_back(part);
    }
  };
  std::size_t at = 0;
  for (const SplitPattern::Match& match :
       step.splits ? step.pattern.matches(text) : std::vector<SplitPattern::Match>()) {
    if (at < match.begin) join({at, match.begin, step.invert});
    join({match.begin, match.end, !step.invert});
    at = match.end;
  }
  if (at < text.size()) join({at, text.size(), step.splits && step.invert});
  for (const Part& part : parts) {
    std::string own = encode_utf8(std::u32string_view(text).substr(part.begin, part.end - part.begin));
    if (step.bytes) {
      std::string characters;
      for (const char byte : own) characters += byte_characters()[static_cast<unsigned char>(byte)];
      own = std::move(characters);
    }
    out.push_back({std::move(own), piece.first && part.begin == 0});
  }
}

}  // namespace llmprof::load
