#include "load/split_pattern.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "base/errors.h"
#include "base/strings.h"
#include "load/unicode.h"

namespace llmprof::load {
namespace {

constexpr std::uint32_t kAnyNumber = std::numeric_limits<std::uint32_t>::max();
constexpr std::size_t kMostSteps = 1000;
constexpr int kMostDepth = 8;
// Of one alternative: what can match in several ways is tried in all of them, so their number bounds the time.
constexpr int kMostLoops = 4, kMostOptions = 16;

}  // namespace

bool SplitPattern::Set::has(char32_t code) const {
  const bool any = std::any_of(items.begin(), items.end(), [&](const Item& item) {
    const bool in = item.spaces            ? is_white_space(code)
                    : item.categories != 0 ? (category(code) & item.categories) != 0
                                           : code >= item.first && code <= item.last;
    return in != item.negated;
  });
  return any != negated;
}

// Alternatives of sequences of parts, as steps: `a|b` is either(2) a jump(end) b.
class PatternParser {
 public:
  explicit PatternParser(std::string_view pattern) : text_(decode_utf8(pattern)), pattern_(pattern) {}

  Result<SplitPattern> parse() {
    LLMPROF_LET(const std::uint32_t least, alternatives(0));
    if (at_ < text_.size()) return refused("a ) without its (");
    if (least == 0) return refused("it matches the empty text");
    out_.steps_.push_back({});
    return std::move(out_);
  }

 private:
  using Kind = SplitPattern::Kind;

  bool more() const { return at_ < text_.size(); }
  bool next_is(std::u32string_view what) const { return std::u32string_view(text_).substr(at_, what.size()) == what; }
  bool take(std::u32string_view what) {
    if (!next_is(what)) return false;
    at_ += what.size();
    return true;
  }
  Error refused(const std::string& why) const {
    return {ErrorCode::kUnsupported, fmt::format("the regular expression {} of this tokenizer: {}", pattern_, why),
            "llmprof counts exactly or not at all; give the counts in the data set, or let the server count"};
  }

  // Each returns how many characters a match has at least.
  Result<std::uint32_t> alternatives(int depth) {
    if (depth > kMostDepth) return refused("groups within groups");
    std::vector<std::size_t> jumps;
    std::uint32_t least = kAnyNumber;
    for (;;) {
      const std::size_t either = out_.steps_.size();
      out_.steps_.push_back({.kind = Kind::kEither});
      LLMPROF_LET(const std::uint32_t own, sequence(depth));
      least = std::min(least, own);
      jumps.push_back(out_.steps_.size());
      out_.steps_.push_back({.kind = Kind::kJump});
      out_.steps_[either].other = out_.steps_.size();
      if (depth > 0) ++options_;
      if (take(U"|")) continue;
      out_.steps_[either] = {.kind = Kind::kJump, .other = either + 1};  // the last has no other
      for (const std::size_t jump : jumps) out_.steps_[jump].other = out_.steps_.size();
      return least;
    }
  }

  Result<std::uint32_t> sequence(int depth) {
    std::uint32_t least = 0;
    last_folded_ = 0;
    if (depth == 0) loops_ = options_ = 0;
    while (more() && !next_is(U"|") && !next_is(U")")) {
      if (out_.steps_.size() > kMostSteps) return refused("it is too long");
      LLMPROF_LET(const std::uint32_t own, next_is(U"(") ? group(depth) : one_set());
      least = std::min(least + own, kAnyNumber / 2);
    }
    if (loops_ > kMostLoops || options_ > kMostOptions) return refused("it can match in too many ways");
    return least;
  }

  Result<std::uint32_t> group(int depth) {
    ++at_;
    if (take(U"?!")) return ahead(true);
    if (take(U"?=")) return ahead(false);
    const bool folded = fold_;
    if (take(U"?i:")) {
      fold_ = true;
    } else if (!take(U"?:") && next_is(U"?")) {
      return refused("a group that begins with (? but is none of (?: (?i: (?! (?=");
    }
    const std::size_t either = out_.steps_.size();
    out_.steps_.push_back({.kind = Kind::kJump, .other = either + 1});
    LLMPROF_LET(const std::uint32_t least, alternatives(depth + 1));
    if (!take(U")")) return refused("a ( without its )");
    fold_ = folded;
    last_folded_ = 0;
    if (next_is(U"*") || next_is(U"+") || next_is(U"{")) return refused("a group that is repeated");
    if (!take(U"?")) return least;
    if (next_is(U"?") || next_is(U"+")) return refused("a lazy or possessive group");
    ++options_;
    out_.steps_[either] = {.kind = Kind::kEither, .other = out_.steps_.size()};
    return 0;
  }

  Result<std::uint32_t> ahead(bool negated) {
    SplitPattern::Set set;
    LLMPROF_TRY(element(set));
    if (!take(U")")) return refused("a lookahead of more than one character");
    out_.steps_.push_back({.kind = Kind::kAhead, .negated = negated, .set = add(std::move(set))});
    return 0;
  }

  Result<std::uint32_t> one_set() {
    SplitPattern::Set set;
    LLMPROF_TRY(element(set));
    SplitPattern::Step step{.kind = Kind::kSet, .set = add(std::move(set))};
    LLMPROF_TRY(quantifier(step));
    if (step.most != step.least) ++(step.most == step.least + 1 ? options_ : loops_);
    out_.steps_.push_back(step);
    return step.least;
  }

  Result<void> quantifier(SplitPattern::Step& step) {
    if (next_is(U"{")) return bounds(step);
    if (take(U"?")) {
      step.least = 0;
    } else if (take(U"*")) {
      step.least = 0, step.most = kAnyNumber;
    } else if (take(U"+")) {
      step.most = kAnyNumber;
    } else {
      return {};
    }
    step.possessive = take(U"+");
    if (next_is(U"?") || next_is(U"*") || next_is(U"+") || next_is(U"{"))
      return refused("a quantifier of a quantifier");
    return {};
  }

  Result<void> bounds(SplitPattern::Step& step) {  // {n}, {n,} or {n,m}
    ++at_;
    const auto number = [&](std::uint32_t fallback) {
      std::uint32_t value = 0;
      const std::size_t begin = at_;
      while (more() && text_[at_] >= U'0' && text_[at_] <= U'9' && value < 1000)
        value = value * 10 + (text_[at_++] - U'0');
      return at_ == begin ? fallback : value;
    };
    step.least = number(kAnyNumber);
    step.most = take(U",") ? number(kAnyNumber) : step.least;
    const bool good = step.least <= 1000 && (step.most <= 1000 || step.most == kAnyNumber) && step.least <= step.most;
    if (!take(U"}") || !good || step.most == 0) return refused("a quantifier in braces that is none of {n} {n,} {n,m}");
    if (next_is(U"?") || next_is(U"*") || next_is(U"+") || next_is(U"{"))
      return refused("a quantifier of a quantifier");
    return {};
  }

  // One character, an escape or a class in brackets.
  Result<void> element(SplitPattern::Set& set) {
    if (!more()) return refused("it ends too early");
    if (take(U"[")) return brackets(set);
    const char32_t code = text_[at_];
    if (code == U'\\') {
      LLMPROF_LET(SplitPattern::Item item, escape());
      set.items.push_back(item);
    } else if (std::u32string_view(U".^$?*+{}()|]").find(code) != std::u32string_view::npos) {
      return refused(fmt::format("the operator {}", encode_utf8({&code, 1})));
    } else {
      ++at_;
      set.items.push_back({.first = code, .last = code});
    }
    return fold_ ? fold(set) : Result<void>();
  }

  // Other cases of a letter, by Unicode's case folding. What folds to two letters (the ligature of s and t) is refused.
  Result<void> fold(SplitPattern::Set& set) {
    const SplitPattern::Item item = set.items.back();
    if (item.first != item.last || item.first >= 0x80) return refused("cases of what is no ASCII character");
    const char letter = base::lowercase(static_cast<char>(item.first));
    const std::string pair{last_folded_, letter};
    for (const char* both : {"ss", "ff", "fi", "fl", "st"}) {
      if (pair == both) return refused("cases of two letters that have a ligature");
    }
    last_folded_ = letter;
    if (letter < 'a' || letter > 'z') return {};
    for (const char32_t code : {char32_t(letter), char32_t(letter - 'a' + 'A')})
      set.items.push_back({.first = code, .last = code});
    if (letter == 's') set.items.push_back({.first = 0x17F, .last = 0x17F});
    if (letter == 'k') set.items.push_back({.first = 0x212A, .last = 0x212A});
    return {};
  }

  Result<void> brackets(SplitPattern::Set& set) {
    if (fold_) return refused("cases of a class");
    set.negated = take(U"^");
    if (next_is(U"]")) return refused("an empty class");
    while (more() && !next_is(U"]")) {
      if (next_is(U"[") || next_is(U"&&")) return refused("a class within a class");
      LLMPROF_LET(SplitPattern::Item item, class_item());
      if (next_is(U"-") && at_ + 1 < text_.size() && text_[at_ + 1] != U']') {
        ++at_;
        LLMPROF_LET(const SplitPattern::Item end, class_item());
        if (item.first != item.last || end.first != end.last || end.first < item.first)
          return refused("an interval that is none");
        item.last = end.last;
      }
      set.items.push_back(item);
    }
    return take(U"]") ? Result<void>() : Result<void>(refused("a [ without its ]"));
  }

  Result<SplitPattern::Item> class_item() {
    if (!more()) return refused("a [ without its ]");
    if (text_[at_] == U'\\') return escape();
    if (next_is(U"[")) return refused("a class within a class");
    const char32_t code = text_[at_++];
    return SplitPattern::Item{.first = code, .last = code};
  }

  Result<SplitPattern::Item> escape() {
    ++at_;
    if (!more()) return refused("it ends too early");
    const char32_t code = text_[at_++];
    const auto just = [](char32_t value) { return SplitPattern::Item{.first = value, .last = value}; };
    switch (code) {
      case U's':
        return SplitPattern::Item{.spaces = true};
      case U'S':
        return SplitPattern::Item{.spaces = true, .negated = true};
      case U'd':
        return SplitPattern::Item{.categories = kNd};
      case U'D':
        return SplitPattern::Item{.categories = kNd, .negated = true};
      case U'n':
        return just(U'\n');
      case U'r':
        return just(U'\r');
      case U't':
        return just(U'\t');
      case U'p':
      case U'P':
        return property(code == U'P');
      default:
        break;
    }
    const bool word = code >= 0x80 || (code >= U'0' && code <= U'9') || base::lowercase(static_cast<char>(code)) >= 'a';
    if (word && (category(code) & (kLetters | kNumbers)) != 0)
      return refused(fmt::format("the escape \\{}", encode_utf8({&code, 1})));
    return just(code);
  }

  Result<SplitPattern::Item> property(bool negated) {
    const std::size_t end = text_.find(U'}', at_);
    if (!take(U"{") || end == std::u32string::npos) return refused("\\p without {}");
    const std::string name = encode_utf8(std::u32string_view(text_).substr(at_, end - at_));
    at_ = end + 1;
    const std::uint32_t categories = categories_named(name);
    if (categories == 0) return refused(fmt::format("the property {}", name));
    return SplitPattern::Item{.categories = categories, .negated = negated};
  }

  std::size_t add(SplitPattern::Set set) {
    out_.sets_.push_back(std::move(set));
    return out_.sets_.size() - 1;
  }

  std::u32string text_;
  std::string pattern_;
  std::size_t at_ = 0;
  bool fold_ = false;
  char last_folded_ = 0;
  int loops_ = 0, options_ = 0;
  SplitPattern out_;
};

Result<SplitPattern> SplitPattern::parse(std::string_view pattern) { return PatternParser(pattern).parse(); }

SplitPattern SplitPattern::literal(std::string_view text) {
  SplitPattern out;
  for (const char32_t code : decode_utf8(text)) {
    out.steps_.push_back({.kind = Kind::kSet, .set = out.sets_.size()});
    out.sets_.push_back({{{.first = code, .last = code}}, false});
  }
  out.steps_.push_back({});
  return out;
}

std::vector<SplitPattern::Match> SplitPattern::matches(std::u32string_view text) const {
  std::vector<Match> found;
  std::vector<Choice> choices;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = match_at(text, at, choices);
    if (end == std::u32string_view::npos || end == at) {
      ++at;
      continue;
    }
    found.push_back({at, end});
    at = end;
  }
  return found;
}

// The end of the match that begins there, npos: none does. Choices that were not taken are kept, the latest first.
std::size_t SplitPattern::match_at(std::u32string_view text, std::size_t at, std::vector<Choice>& choices) const {
  choices.clear();
  for (std::size_t number = 0;;) {
    const Step& step = steps_[number];
    bool fails = false;
    switch (step.kind) {
      case Kind::kMatch:
        return at;
      case Kind::kSet: {
        std::size_t count = 0;
        while (count < step.most && at + count < text.size() && sets_[step.set].has(text[at + count])) ++count;
        fails = count < step.least;
        if (fails) break;
        if (!step.possessive && count > step.least) choices.push_back({number + 1, at + step.least, at + count - 1});
        at += count;
        ++number;
        break;
      }
      case Kind::kEither:
        choices.push_back({step.other, at, at});
        ++number;
        break;
      case Kind::kJump:
        number = step.other;
        break;
      case Kind::kAhead:
        fails = (at < text.size() && sets_[step.set].has(text[at])) == step.negated;
        ++number;
        break;
    }
    if (!fails) continue;
    if (choices.empty()) return std::u32string_view::npos;
    Choice& last = choices.back();
    number = last.step;
    at = last.most;
    if (last.most > last.least) {
      --last.most;
    } else {
      choices.pop_back();
    }
  }
}

}  // namespace llmprof::load
