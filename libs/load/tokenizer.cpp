#include "load/tokenizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "base/errors.h"
#include "base/file.h"
#include "base/strings.h"
#include "load/unicode.h"

namespace llmprof::load {
namespace {

constexpr std::uint64_t kMostBytes = 128u << 20;
constexpr std::size_t kMostAdded = 100'000;

// base::parse_json with an index of the keys of every object.
Result<TokenizerJson> parse_indexed(std::string_view text, std::string_view where) {
  constexpr int kMostDepth = 64;
  int depth = 0;
  const auto watch = [&](int level, TokenizerJson::parse_event_t, TokenizerJson&) {
    depth = std::max(depth, level);
    return level <= kMostDepth;
  };
  try {
    TokenizerJson json = TokenizerJson::parse(text.begin(), text.end(), watch);
    if (depth > kMostDepth || !json.is_object()) return corrupt_error("{}: not a tokenizer.json", where);
    return json;
  } catch (const TokenizerJson::parse_error& error) {
    return corrupt_error("{}:byte {}: not valid JSON", where, error.byte);
  } catch (const TokenizerJson::exception& error) {
    return corrupt_error("{}: {}", where, error.what());
  }
}

// The tokens that a post-processor puts around one text.
Result<std::int64_t> special_tokens_of(const TokenizerJson& json) {
  if (!json.is_object()) return 0;
  const std::string type = text_of(json, "type");
  if (type == "ByteLevel") return 0;
  if (type == "RobertaProcessing" || type == "BertProcessing") return 2;
  if (type == "Sequence" && json.contains("processors") && json["processors"].is_array()) {
    std::int64_t sum = 0;
    for (const TokenizerJson& each : json["processors"]) {
      if (text_of(each, "type") == "Sequence") return refused_step("post-processor", "Sequence of Sequences");
      LLMPROF_LET(const std::int64_t own, special_tokens_of(each));
      sum += own;
    }
    return sum;
  }
  if (type != "TemplateProcessing" || !json.contains("single") || !json["single"].is_array())
    return refused_step("post-processor", type);
  return std::count_if(json["single"].begin(), json["single"].end(),
                       [](const TokenizerJson& each) { return each.is_object() && each.contains("SpecialToken"); });
}

const TokenizerJson& field(const TokenizerJson& json, const char* key) {
  static const TokenizerJson null;
  const auto found = json.find(key);
  return found == json.end() ? null : *found;
}

}  // namespace

void Tokenizer::AddedSet::add(Added token) {
  auto& same = by_first_byte_[static_cast<unsigned char>(token.text[0])];
  const auto longer = [&](std::size_t i) { return tokens_[i].text.size() >= token.text.size(); };
  same.insert(std::find_if_not(same.begin(), same.end(), longer), tokens_.size());
  tokens_.push_back(std::move(token));
}

const Tokenizer::Added* Tokenizer::AddedSet::at(std::string_view text) const {
  for (const std::size_t i : by_first_byte_[static_cast<unsigned char>(text[0])]) {
    if (text.starts_with(tokens_[i].text)) return &tokens_[i];
  }
  return nullptr;
}

Result<Tokenizer> Tokenizer::read(const std::string& path) {
  const std::string file = base::is_directory(path) ? path + "/tokenizer.json" : path;
  LLMPROF_LET(const std::string text, base::read_file(file, kMostBytes));
  return parse(text, file);
}

Result<Tokenizer> Tokenizer::parse(std::string_view text, std::string_view where) {
  const auto at = [&](Error error) {
    error.message = fmt::format("{}: {}", where, error.message);
    return error;
  };
  LLMPROF_LET(const TokenizerJson json, parse_indexed(text, where));
  Tokenizer out;
  auto normalizer = Normalizer::read(field(json, "normalizer"));
  if (!normalizer) return at(normalizer.error());
  out.normalizer_ = std::move(*normalizer);
  auto pre_tokenizer = PreTokenizer::read(field(json, "pre_tokenizer"), out.normalizer_.prepends());
  if (!pre_tokenizer) return at(pre_tokenizer.error());
  out.pre_tokenizer_ = std::move(*pre_tokenizer);
  if (!field(json, "model").is_object())
    return Error{ErrorCode::kCorruptInput, fmt::format("{}: no \"model\": not a tokenizer.json", where), ""};
  auto model = Bpe::read(json["model"]);
  if (!model) return at(model.error());
  out.model_ = std::move(*model);
  if (auto added = out.read_added(field(json, "added_tokens")); !added) return at(added.error());
  auto special = special_tokens_of(field(json, "post_processor"));
  if (!special) return at(special.error());
  out.special_tokens_ = *special;
  out.find_words();
  return out;
}

Result<void> Tokenizer::read_added(const TokenizerJson& list) {
  if (list.is_null()) return {};
  if (!list.is_array() || list.size() > kMostAdded) return corrupt_error("\"added_tokens\" is not a list, or too long");
  std::set<std::string> seen;
  for (const TokenizerJson& each : list) {
    Added token;
    token.text = each.is_object() ? text_of(each, "content") : "";
    if (token.text.empty() || !seen.insert(token.text).second) continue;  // as `tokenizers` does
    const auto id = each.find("id");
    if (id == each.end() || !id->is_number_unsigned() || id->get<std::uint64_t>() > (16u << 20))
      return corrupt_error("the added token {} has no id", token.text);
    token.id = id->get<std::int32_t>();
    if (const auto own = model_.find(token.text); own && *own != token.id)
      return corrupt_error("the added token {} has the id {}, in the vocabulary it has {}", token.text, token.id, *own);
    if (flag_of(each, "single_word", false)) return refused_step("setting of an added token", "single_word");
    token.strip_left = flag_of(each, "lstrip", false);
    token.strip_right = flag_of(each, "rstrip", false);
    if (flag_of(each, "normalized", !flag_of(each, "special", false))) {
      token.text = normalizer_.apply(token.text);
      if (!token.text.empty()) normalized_.add(std::move(token));
    } else {
      added_.add(std::move(token));
    }
  }
  return {};
}

// The text between added tokens, and these. White space beside a token that strips it goes with it.
std::vector<Tokenizer::Part> Tokenizer::cut(std::string_view text, const AddedSet& added) {
  std::vector<Part> parts;
  std::size_t begin = 0;
  for (std::size_t at = 0; at < text.size() && !added.empty();) {
    const Added* token = added.at(text.substr(at));
    if (token == nullptr) {
      ++at;
      continue;
    }
    std::size_t first = at, end = at + token->text.size();
    at = end;
    if (token->strip_left) {
      const std::u32string before = decode_utf8(text.substr(0, first));
      for (std::size_t i = before.size(); i > 0 && is_white_space(before[i - 1]); --i)
        first -= encode_utf8({&before[i - 1], 1}).size();
      first = std::max(first, begin);
    }
    for (const char32_t code : token->strip_right ? decode_utf8(text.substr(end)) : std::u32string()) {
      if (!is_white_space(code)) break;
      end += encode_utf8({&code, 1}).size();
    }
    if (begin < first) parts.push_back({text.substr(begin, first - begin), begin});
    parts.push_back({{}, first, token->id});
    begin = end;
  }
  if (begin < text.size()) parts.push_back({text.substr(begin), begin});
  return parts;
}

std::vector<std::int32_t> Tokenizer::encode(std::string_view text) const {
  const std::string valid = encode_utf8(decode_utf8(text));
  std::vector<std::int32_t> ids;
  for (const Part& part : cut(valid, added_)) {
    if (part.id >= 0) {
      ids.push_back(part.id);
      continue;
    }
    const std::string normal = normalizer_.apply(std::string(part.text));
    for (const Part& own : cut(normal, normalized_)) {
      if (own.id >= 0) {
        ids.push_back(own.id);
      } else {
        encode_piece(std::string(own.text), part.begin == 0 && own.begin == 0, ids);
      }
    }
  }
  return ids;
}

void Tokenizer::encode_piece(std::string text, bool first, std::vector<std::int32_t>& out) const {
  for (const Piece& piece : pre_tokenizer_.apply({std::move(text), first})) model_.encode(piece.text, out);
}

// Candidates are words with a space in front, of ASCII letters only: GPT-2 writes " the" as Ġthe, SentencePiece as
// ▁the. Whether they stay tokens is tried, not assumed.
void Tokenizer::find_words() {
  constexpr std::size_t kMostWords = 4096;
  const auto letter = [](char c) { return base::lowercase(c) >= 'a' && base::lowercase(c) <= 'z'; };
  model_.for_each_token([&](const std::string& token, std::int32_t id) {
    for (const std::string_view space : {"Ġ", "▁"}) {
      const std::string_view word = token.starts_with(space) ? std::string_view(token).substr(space.size()) : "";
      if (word.empty() || !std::all_of(word.begin(), word.end(), letter)) continue;
      words_.push_back({" " + std::string(word), id, false});
    }
  });
  std::sort(words_.begin(), words_.end(), [](const Word& a, const Word& b) { return a.id < b.id; });
  if (words_.size() > kMostWords) {  // spread over the vocabulary
    for (std::size_t i = 0; i < kMostWords; ++i) words_[i] = words_[i * words_.size() / kMostWords];
    words_.resize(kMostWords);
  }
  const std::vector<std::int32_t> around = encode("x x");
  std::erase_if(words_, [&](const Word& word) {
    const std::vector<std::int32_t> ids = encode("x" + word.text + " x");
    return !(ids.size() == around.size() + 1 && std::find(ids.begin(), ids.end(), word.id) != ids.end());
  });
  for (Word& word : words_) word.opens = count(std::string_view(word.text).substr(1)) == 1;
}

}  // namespace llmprof::load
