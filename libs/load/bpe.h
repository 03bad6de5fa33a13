#pragma once
// Byte-pair encoding as `tokenizers` does it, from the "model" of a tokenizer.json: vocabulary and merges, with
// fallback to tokens of single bytes, and unknown tokens.

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "load/text_steps.h"

namespace llmprof::load {

class Bpe {
 public:
  static Result<Bpe> read(const TokenizerJson& model);

  // Appends the tokens of one piece.
  void encode(std::string_view piece, std::vector<std::int32_t>& out) const;
  std::optional<std::int32_t> find(std::string_view token) const;
  std::size_t size() const { return vocabulary_.size(); }
  // Every token, in no order.
  template <class Visit>
  void for_each_token(const Visit& visit) const {
    for (const auto& [text, id] : vocabulary_) visit(text, id);
  }

 private:
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
  };
  struct Merge {
    std::uint32_t rank = 0;
    std::int32_t id = 0;
  };
  struct Symbol;
  Result<void> read_vocabulary(const TokenizerJson& model);
  Result<void> read_merges(const TokenizerJson& model);
  std::vector<Symbol> symbols_of(std::string_view piece) const;
  const Merge* merge_of(std::int32_t left, std::int32_t right) const;
  void merge(std::vector<Symbol>& symbols) const;

  std::unordered_map<std::string, std::int32_t, Hash, std::equal_to<>> vocabulary_;
  std::unordered_map<std::uint64_t, Merge> merges_;  // by left << 32 | right
  std::array<std::int32_t, 256> bytes_{};            // the tokens <0x00> to <0xFF>; -1: not there
  std::int32_t unknown_ = -1;                        // -1: what is unknown is left out
  bool fuse_unknown_ = false, byte_fallback_ = false, ignore_merges_ = false;
};

}  // namespace llmprof::load
