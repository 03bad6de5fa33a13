#pragma once
// The regular expressions by which tokenizers split texts: classes of characters with quantifiers, alternatives, groups
// that may be left out, one character of lookahead. Everything else is refused when it is read, so what is accepted
// means what it means to Oniguruma, which `tokenizers` uses. Matching takes no recursion.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace llmprof::load {

class SplitPattern {
 public:
  static Result<SplitPattern> parse(std::string_view pattern);
  // The exact text.
  static SplitPattern literal(std::string_view text);

  struct Match {
    std::size_t begin = 0, end = 0;  // in code points
  };
  // From left to right; they do not overlap, and none is empty.
  std::vector<Match> matches(std::u32string_view text) const;

 private:
  friend class PatternParser;
  struct Item {
    char32_t first = 1, last = 0;  // an interval, unless it is empty,
    std::uint32_t categories = 0;  // or categories,
    bool spaces = false;           // or white space;
    bool negated = false;          // all others
  };
  struct Set {
    std::vector<Item> items;
    bool negated = false;
    bool has(char32_t code) const;
  };
  enum class Kind : std::uint8_t { kSet, kEither, kJump, kAhead, kMatch };
  struct Step {
    Kind kind = Kind::kMatch;
    bool negated = false;               // kAhead: the set must not follow
    bool possessive = false;            // kSet: gives nothing back
    std::uint32_t least = 1, most = 1;  // kSet
    std::size_t set = 0;                // kSet, kAhead
    std::size_t other = 0;              // kJump; kEither: where to go on if the next step fails
  };
  struct Choice {
    std::size_t step, least, most;  // go on at `step`, from most down to least
  };
  std::size_t match_at(std::u32string_view text, std::size_t at, std::vector<Choice>& choices) const;

  std::vector<Set> sets_;
  std::vector<Step> steps_;
};

}  // namespace llmprof::load
