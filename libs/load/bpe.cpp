#include "load/bpe.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <queue>

#include "base/errors.h"
#include "base/strings.h"

namespace llmprof::load {
namespace {

constexpr std::size_t kMostTokens = 4 << 20;
constexpr std::int64_t kMostId = 16 << 20;

std::uint64_t pair_key(std::int32_t left, std::int32_t right) {
  return static_cast<std::uint64_t>(static_cast<std::uint32_t>(left)) << 32 | static_cast<std::uint32_t>(right);
}

// The two sides of "a b" or ["a", "b"].
Result<std::pair<std::string, std::string>> sides(const TokenizerJson& merge, std::size_t number) {
  if (merge.is_string()) {
    const auto& text = merge.get_ref<const std::string&>();
    const std::vector<std::string_view> parts = base::split(text, ' ');
    if (parts.size() == 2) return std::pair(std::string(parts[0]), std::string(parts[1]));
  } else if (merge.is_array() && merge.size() == 2 && merge[0].is_string() && merge[1].is_string()) {
    return std::pair(merge[0].get<std::string>(), merge[1].get<std::string>());
  }
  return corrupt_error("merge {} is not a pair of tokens", number);
}

// Settings that change what is encoded and that no usual model has.
Result<void> check_settings(const TokenizerJson& model) {
  const auto dropout = model.find("dropout");
  if (dropout != model.end() && dropout->is_number() && dropout->get<double>() != 0)
    return refused_step("setting", "dropout");
  for (const char* key : {"continuing_subword_prefix", "end_of_word_suffix"}) {
    if (!text_of(model, key).empty()) return refused_step("setting", key);
  }
  return {};
}

}  // namespace

struct Bpe::Symbol {
  std::int32_t id;
  std::size_t before, after;  // npos: none
  bool gone = false;
};

Result<Bpe> Bpe::read(const TokenizerJson& model) {
  const std::string type = text_of(model, "type");
  // Files of before 2020 do not say the type; merges are BPE's only.
  if (type != "BPE" && !(type.empty() && model.contains("merges"))) return refused_step("model", type);
  LLMPROF_TRY(check_settings(model));
  Bpe out;
  out.fuse_unknown_ = flag_of(model, "fuse_unk", false);
  out.byte_fallback_ = flag_of(model, "byte_fallback", false);
  out.ignore_merges_ = flag_of(model, "ignore_merges", false);
  LLMPROF_TRY(out.read_vocabulary(model));
  LLMPROF_TRY(out.read_merges(model));
  if (const std::string unknown = text_of(model, "unk_token"); !unknown.empty()) {
    const auto found = out.find(unknown);
    if (!found) return corrupt_error("the unknown token {} is not in the vocabulary", unknown);
    out.unknown_ = *found;
  }
  for (std::size_t byte = 0; byte < 256; ++byte)
    out.bytes_[byte] = out.find(fmt::format("<0x{:02X}>", byte)).value_or(-1);
  return out;
}

Result<void> Bpe::read_vocabulary(const TokenizerJson& model) {
  const auto found = model.find("vocab");
  if (found == model.end() || !found->is_object()) return corrupt_error("no \"vocab\" in the model");
  if (found->size() > kMostTokens) return corrupt_error("a vocabulary of {} tokens", found->size());
  vocabulary_.reserve(found->size());
  for (const auto& [text, id] : found->items()) {
    if (!id.is_number_integer() || id.get<std::int64_t>() < 0 || id.get<std::int64_t>() > kMostId)
      return corrupt_error("the id of token {} is not a number up to {}", text, kMostId);
    vocabulary_.emplace(text, id.get<std::int32_t>());
  }
  return {};
}

Result<void> Bpe::read_merges(const TokenizerJson& model) {
  const auto found = model.find("merges");
  if (found == model.end() || !found->is_array()) return corrupt_error("no \"merges\" in the model");
  if (found->size() > kMostTokens) return corrupt_error("{} merges", found->size());
  merges_.reserve(found->size());
  std::uint32_t rank = 0;
  for (const TokenizerJson& merge : *found) {
    if (merge.is_string() && merge.get_ref<const std::string&>().starts_with("#version")) continue;
    LLMPROF_LET(const auto both, sides(merge, rank + 1));
    const auto left = find(both.first), right = find(both.second), whole = find(both.first + both.second);
    if (!left || !right || !whole)
      return corrupt_error("merge {}, of {} and {}, is not in the vocabulary", rank + 1, both.first, both.second);
    merges_[pair_key(*left, *right)] = {rank++, *whole};
  }
  return {};
}

std::optional<std::int32_t> Bpe::find(std::string_view token) const {
  const auto found = vocabulary_.find(token);
  return found == vocabulary_.end() ? std::nullopt : std::optional(found->second);
}

std::vector<Bpe::Symbol> Bpe::symbols_of(std::string_view piece) const {
  std::vector<Symbol> symbols;
  bool unknown = false;  // one is pending: those that follow may become part of it
  const auto add = [&](std::int32_t id) { symbols.push_back({id, symbols.size() - 1, symbols.size() + 1}); };
  while (!piece.empty()) {
    const std::size_t bytes = std::max<std::size_t>(base::utf8_bytes(piece), 1);
    const std::string_view character = piece.substr(0, bytes);
    piece.remove_prefix(bytes);
    if (const auto id = find(character)) {
      if (unknown) add(unknown_);
      unknown = false;
      add(*id);
      continue;
    }
    bool known_bytes = byte_fallback_;
    for (const char byte : character) known_bytes = known_bytes && bytes_[static_cast<unsigned char>(byte)] >= 0;
    if (known_bytes) {
      for (const char byte : character) add(bytes_[static_cast<unsigned char>(byte)]);
    } else if (unknown_ >= 0) {
      if (unknown && !fuse_unknown_) add(unknown_);
      unknown = true;
    }
  }
  if (unknown) add(unknown_);
  if (!symbols.empty()) symbols.back().after = std::string_view::npos;
  return symbols;
}

const Bpe::Merge* Bpe::merge_of(std::int32_t left, std::int32_t right) const {
  const auto found = merges_.find(pair_key(left, right));
  return found == merges_.end() ? nullptr : &found->second;
}

// The pair of the lowest rank first, of equal ones the leftmost. An entry of the queue is stale if its pair does not
// make its token any more.
void Bpe::merge(std::vector<Symbol>& symbols) const {
  constexpr std::size_t kNone = std::string_view::npos;
  struct Entry {
    std::uint32_t rank;
    std::size_t at;
    std::int32_t id;
    bool operator<(const Entry& other) const { return std::pair(rank, at) > std::pair(other.rank, other.at); }
  };
  std::priority_queue<Entry> queue;
  const auto offer = [&](std::size_t left) {
    if (left == kNone || symbols[left].after == kNone) return;
    if (const Merge* merge = merge_of(symbols[left].id, symbols[symbols[left].after].id))
      queue.push({merge->rank, left, merge->id});
  };
  for (std::size_t i = 0; i + 1 < symbols.size(); ++i) offer(i);
  while (!queue.empty()) {
    const Entry top = queue.top();
    queue.pop();
    Symbol& left = symbols[top.at];
    if (left.gone || left.after == kNone) continue;
    Symbol& right = symbols[left.after];
    const Merge* merge = merge_of(left.id, right.id);
    if (merge == nullptr || merge->id != top.id) continue;
    left.id = top.id;
    left.after = right.after;
    right.gone = true;
    if (left.after != kNone) symbols[left.after].before = top.at;
    offer(left.before);
    offer(top.at);
  }
}

void Bpe::encode(std::string_view piece, std::vector<std::int32_t>& out) const {
  if (ignore_merges_) {
    if (const auto whole = find(piece)) {
      out.push_back(*whole);
      return;
    }
  }
  std::vector<Symbol> symbols = symbols_of(piece);
  merge(symbols);
  for (const Symbol& symbol : symbols) {
    if (!symbol.gone) out.push_back(symbol.id);
  }
}

}  // namespace llmprof::load
