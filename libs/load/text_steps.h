#pragma once
// What a tokenizer does to a text before its model sees it: normalizers, then pre-tokenizers that cut it into pieces.

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "base/result.h"
#include "load/split_pattern.h"

namespace llmprof::load {

using TokenizerJson = nlohmann::json;  // with an index: base::Json looks through 100,000 keys one by one

// "Prepend", "Replace", "NFC", "Sequence". Others are refused.
class Normalizer {
 public:
  static Result<Normalizer> read(const TokenizerJson& json);
  std::string apply(std::string text) const;
  bool prepends() const;

 private:
  enum class Kind : std::uint8_t { kPrepend, kReplace, kCompose };
  struct Step {
    Kind kind;
    std::string text;      // put in front, or in the place of what matches
    SplitPattern pattern;  // kReplace
  };
  std::vector<Step> steps_;
};

struct Piece {
  std::string text;
  bool first = false;  // begins where the whole text does
};

// "ByteLevel", "Split", "Digits", "Metaspace", "Sequence". Others are refused.
class PreTokenizer {
 public:
  static Result<PreTokenizer> read(const TokenizerJson& json, bool normalizer_prepends);
  std::vector<Piece> apply(Piece piece) const;

 private:
  enum class Behavior : std::uint8_t { kRemoved, kIsolated, kWithPrevious, kWithNext, kContiguous };
  struct Step {
    bool splits = false;
    SplitPattern pattern{};
    Behavior behavior = Behavior::kIsolated;
    bool invert = false;        // the matches are what is not matched
    std::string space{};        // spaces become this,
    std::string prefix{};       // and this is put in front
    bool prefix_first = false;  // of the first piece only
    bool bytes = false;         // every byte becomes a character of its own, as GPT-2 writes them
  };
  Result<void> add(const TokenizerJson& json, bool normalizer_prepends);
  Result<void> add_split(const TokenizerJson& json);
  Result<void> add_metaspace(const TokenizerJson& json, bool normalizer_prepends);
  static void run(const Step& step, Piece piece, std::vector<Piece>& out);

  std::vector<Step> steps_;
};

// Of the fields of a tokenizer.json; `fallback` where there is none of this type.
bool flag_of(const TokenizerJson& json, const char* key, bool fallback);
std::string text_of(const TokenizerJson& json, const char* key);
Error refused_step(const char* what, const std::string& name);

}  // namespace llmprof::load
