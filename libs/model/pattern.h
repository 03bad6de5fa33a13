#pragma once
// Regular expressions as quantization_config uses them for module names, matched in time proportional to pattern times
// text: files are untrusted, and backtracking would let one hang us.

#include <bitset>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace llmprof::model {

class Pattern {
 public:
  // Literals, . [a-z] [^a-z] ( | ) (?: ) * + ? {n,m} ^ $ and \d \w \s \. …; nullopt for anything else or too large.
  static std::optional<Pattern> compile(std::string_view text);
  // At the beginning of `text`, as Python's re.match.
  bool matches(std::string_view text) const;

 private:
  friend class PatternParser;
  using Set = std::bitset<256>;
  enum class Kind : std::uint8_t { kSet, kSplit, kJump, kBegin, kEnd, kMatch };
  struct Step {
    Kind kind = Kind::kMatch;
    std::uint16_t set = 0;              // of sets_
    std::uint16_t next = 0, other = 0;  // kSplit: both; kJump: next
  };
  struct Threads;
  void follow(Threads& threads, std::uint16_t step, std::size_t at, std::size_t end) const;

  std::vector<Step> steps_;
  std::vector<Set> sets_;
};

}  // namespace llmprof::model
