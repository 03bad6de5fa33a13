#pragma once
// Hugging Face's tokenizer.json, byte-pair encodings: a text's tokens, the same as `tokenizers` gives (without the
// tokens that a server puts around a prompt; see special_tokens). What cannot be followed exactly is an error when the
// file is read. Truncation and padding of the file are not applied: servers do not, either.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "load/bpe.h"
#include "load/text_steps.h"

namespace llmprof::load {

class Tokenizer {
 public:
  // A tokenizer.json, or the folder of a model that holds one.
  static Result<Tokenizer> read(const std::string& path);
  static Result<Tokenizer> parse(std::string_view json, std::string_view where);

  // `text` is UTF-8; bytes that are not become U+FFFD.
  std::vector<std::int32_t> encode(std::string_view text) const;
  std::int64_t count(std::string_view text) const { return static_cast<std::int64_t>(encode(text).size()); }

  // How many tokens the file's template puts around a text, such as <s>.
  std::int64_t special_tokens() const { return special_tokens_; }

  // Words that are one token each, with the space in front, among others of these. Random prompts are made of them.
  struct Word {
    std::string text;
    std::int32_t id = 0;
    bool opens = false;  // also at the beginning of a text, without the space
  };
  const std::vector<Word>& words() const { return words_; }

 private:
  struct Added {
    std::string text;
    std::int32_t id = 0;
    bool strip_left = false, strip_right = false;
  };
  // Added tokens by the bytes they begin with: of those that match at a place, the longest counts.
  class AddedSet {
   public:
    void add(Added token);
    const Added* at(std::string_view text) const;
    bool empty() const { return tokens_.empty(); }

   private:
    std::vector<Added> tokens_;  // by first byte, the longer first
    std::vector<std::vector<std::size_t>> by_first_byte_ = std::vector<std::vector<std::size_t>>(256);
  };
  struct Part {
    std::string_view text;
    std::size_t begin = 0;
    std::int32_t id = -1;  // of an added token
  };
  static std::vector<Part> cut(std::string_view text, const AddedSet& added);
  Result<void> read_added(const TokenizerJson& list);
  void find_words();
  void encode_piece(std::string text, bool first, std::vector<std::int32_t>& out) const;

  Normalizer normalizer_;
  PreTokenizer pre_tokenizer_;
  Bpe model_;
  AddedSet added_, normalized_;  // found before and behind the normalizer
  std::int64_t special_tokens_ = 0;
  std::vector<Word> words_;
};

}  // namespace llmprof::load
