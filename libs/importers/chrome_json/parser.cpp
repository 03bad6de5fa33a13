#include "importers/chrome_json/parser.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>

#include "base/strings.h"
#include "importers/chrome_json/block.h"
#include "importers/chrome_json/scalars.h"
#include "importers/text.h"

namespace llmprof::importers::chrome_json {

// The members of "args" that are known by name, and where they go. Everything else is left to Arguments::raw.
struct ArgumentKey {
  enum class Kind : std::uint8_t { kNone, kInteger, kTriple, kText, kRaw };

  constexpr ArgumentKey() = default;
  constexpr ArgumentKey(std::string_view key, std::int64_t Arguments::*field)
      : text(key), kind(Kind::kInteger), integer(field) {}
  constexpr ArgumentKey(std::string_view key, std::array<std::int64_t, 3> Arguments::*field)
      : text(key), kind(Kind::kTriple), triple(field) {}
  constexpr ArgumentKey(std::string_view key, std::string_view Arguments::*field, Kind k = Kind::kText)
      : text(key), kind(k), view(field) {}

  std::string_view text;
  Kind kind = Kind::kNone;
  std::int64_t Arguments::*integer = nullptr;
  std::array<std::int64_t, 3> Arguments::*triple = nullptr;
  std::string_view Arguments::*view = nullptr;
};

inline constexpr auto kRawJson = ArgumentKey::Kind::kRaw;
inline constexpr ArgumentKey kArgumentKeys[] = {
    {"External id", &Arguments::external_id},
    {"correlation", &Arguments::correlation},
    {"device", &Arguments::device},
    {"Device Id", &Arguments::device},
    {"context", &Arguments::context},
    {"stream", &Arguments::stream},
    {"grid", &Arguments::grid},
    {"block", &Arguments::block},
    {"registers per thread", &Arguments::registers},
    {"shared memory", &Arguments::shared_bytes},
    {"bytes", &Arguments::bytes},
    {"Bytes", &Arguments::bytes},
    {"graph node id", &Arguments::graph_node_id},
    {"graph id", &Arguments::graph_id},
    {"Sequence number", &Arguments::sequence},
    {"Addr", &Arguments::address},
    {"Total Allocated", &Arguments::total_allocated},
    {"Total Reserved", &Arguments::total_reserved},
    {"Device Type", &Arguments::device_type},
    {"Input Dims", &Arguments::dims, kRawJson},
    {"Input dims", &Arguments::dims, kRawJson},  // until PyTorch 2.0
    {"Input type", &Arguments::types, kRawJson},
    {"Concrete Inputs", &Arguments::concrete, kRawJson},
    {"Input Strides", &Arguments::strides, kRawJson},
    {"name", &Arguments::name},
    {"Collective name", &Arguments::collective},
    {"Process Group Name", &Arguments::process_group},
    {"Process Group Description", &Arguments::group_description},
    {"Process Group Ranks", &Arguments::group_ranks},
    {"dtype", &Arguments::dtype},
    {"In msg nelems", &Arguments::in_elements},
    {"Out msg nelems", &Arguments::out_elements},
    {"Group size", &Arguments::group_size},
};

// An open-addressed table, made by the compiler.
class ArgumentTable {
 public:
  constexpr ArgumentTable() {
    for (const ArgumentKey& key : kArgumentKeys) {
      std::size_t slot = slot_of(key.text);
      while (slots_[slot].kind != ArgumentKey::Kind::kNone) slot = (slot + 1) % kSlots;
      slots_[slot] = key;
    }
  }
  const ArgumentKey* find(std::string_view text) const {
    if (text.empty()) return nullptr;
    for (std::size_t slot = slot_of(text);; slot = (slot + 1) % kSlots) {
      const ArgumentKey& key = slots_[slot];
      if (key.kind == ArgumentKey::Kind::kNone) return nullptr;
      if (key.text.size() == text.size() && std::memcmp(key.text.data(), text.data(), text.size()) == 0) return &key;
    }
  }

 private:
  static constexpr std::size_t kSlots = 256;
  static_assert(std::size(kArgumentKeys) < kSlots / 2);
  static constexpr std::size_t slot_of(std::string_view text) {
    const auto at = [&](std::size_t i) { return static_cast<std::size_t>(static_cast<unsigned char>(text[i])); };
    return (at(0) * 7 + at(text.size() / 2) * 13 + at(text.size() - 1) * 31 + text.size() * 5) % kSlots;
  }
  std::array<ArgumentKey, kSlots> slots_{};
};

inline constexpr ArgumentTable kArgumentTable;

namespace {

bool ends_scalar(char c) { return static_cast<unsigned char>(c) <= ' ' || c == ',' || c == '}' || c == ']'; }

// Reads from a place that only moves forward and never beyond the end. Functions that return false leave the place
// somewhere in the event; the caller skips the whole of it.
class Parser {
 public:
  Parser(std::string_view text, std::uint64_t offset, bool unclean, Parsed& out)
      : begin_(text.data()),
        at_(text.data()),
        end_(text.data() + text.size()),
        offset_(offset),
        unclean_(unclean),
        out_(out) {}

  void run() {
    for (skip_separators(); at_ < end_; skip_separators()) {
      const char* const begin = at_;
      if (*at_ == '{') {
        Event& event = out_.events.emplace_back();
        const bool read = read_event(event) && at_ <= end_;
        if (read && event.phase != 0) continue;
        out_.events.pop_back();
        if (read && !is_empty(between(begin, at_))) out_.no_phase.add(where(begin));
        if (read) continue;
      }
      at_ = begin;
      if (!skip_value() || at_ <= begin || at_ > end_) at_ = begin + 1;
      out_.damaged.add(where(begin));
    }
  }

 private:
  std::uint64_t where(const char* place) const { return offset_ + static_cast<std::uint64_t>(place - begin_); }
  static std::string_view between(const char* from, const char* to) {
    return {from, static_cast<std::size_t>(to - from)};
  }

  // {}: some writers end with one, so that every event may have a comma behind it.
  static bool is_empty(std::string_view object) {
    object.remove_prefix(1), object.remove_suffix(1);
    return std::all_of(object.begin(), object.end(), [](char c) { return static_cast<unsigned char>(c) <= ' '; });
  }

  void space() {
    while (at_ < end_ && static_cast<unsigned char>(*at_) <= ' ') ++at_;
  }
  void skip_separators() {
    while (at_ < end_ && (static_cast<unsigned char>(*at_) <= ' ' || *at_ == ',')) ++at_;
  }

  // The members of an object; `on_member(key)` reads the value.
  template <class OnMember>
  bool read_object(const OnMember& on_member) {
    ++at_;
    space();
    while (*at_ == '"') {
      std::string_view key;
      bool escaped = false;
      if (!read_string(key, escaped)) return false;
      space();
      if (*at_ != ':') return false;
      ++at_;
      space();
      if (!on_member(key)) return false;
      space();
      if (*at_ == '}') break;
      if (*at_ != ',') return false;
      const char* const comma = at_++;
      space();
      if (*at_ == '}') out_.commas.add(where(comma));
    }
    if (*at_ != '}') return false;
    ++at_;
    return true;
  }

  bool read_event(Event& event) {
    event.offset = where(at_);
    return read_object([&](std::string_view key) { return read_member(event, key); });
  }

  bool read_member(Event& event, std::string_view key) {
    const auto is = [&](const char* text) { return std::memcmp(key.data(), text, key.size()) == 0; };
    switch (key.size()) {
      case 2:
        if (is("ph")) return read_phase(event.phase);
        if (is("ts")) return read_microseconds(event.ts_ns);
        if (is("id")) return read_id(event.id);
        break;
      case 3:
        if (is("cat")) return read_text(event.category);
        if (is("pid")) return read_lane(event.pid);
        if (is("tid")) return read_lane(event.tid);
        if (is("dur")) return read_microseconds(event.dur_ns);
        if (is("id2")) return read_id(event.id);
        break;
      case 4:
        if (is("name")) return read_text(event.name);
        if (is("args")) return read_arguments(event.args);
        break;
      default:
        break;
    }
    return skip_value();
  }

  bool read_arguments(Arguments& arguments) {
    const char* const begin = at_;
    if (!arguments.raw.empty()) arguments = {};  // the last of several wins
    const bool read =
        *at_ == '{' ? read_object([&](std::string_view key) { return read_argument(arguments, key); }) : skip_value();
    if (read) arguments.raw = clean(between(begin, at_));
    return read;
  }

  bool read_argument(Arguments& arguments, std::string_view key) {
    const ArgumentKey* const known = kArgumentTable.find(key);
    if (known == nullptr) return skip_value();
    switch (known->kind) {
      case ArgumentKey::Kind::kInteger:
        return read_integer(arguments.*(known->integer));
      case ArgumentKey::Kind::kTriple:
        return read_triple(arguments.*(known->triple));
      case ArgumentKey::Kind::kText:
        return read_text(arguments.*(known->view));
      default:
        return read_raw(arguments.*(known->view));
    }
  }

  bool read_raw(std::string_view& value) {
    const char* const begin = at_;
    if (!skip_value()) return false;
    value = clean(between(begin, at_));
    return true;
  }

  bool read_phase(char& phase) {
    std::string_view text;
    if (!read_text(text)) return false;
    phase = text.empty() ? '\0' : text[0];
    return true;
  }

  bool read_lane(Lane& lane) {
    if (*at_ != '"') return lane.text = {}, read_integer(lane.number);
    lane.number = kUnknown;
    return read_text(lane.text);
  }

  // A number, or a text; texts that are no numbers are distinguished by their hash.
  bool read_id(std::int64_t& id) {
    std::string_view text;
    if (*at_ != '"' && *at_ != '{') return read_integer(id);
    if (!read_raw(text)) return false;
    if (const auto number = integer(text.substr(1, text.size() - 2))) {
      id = *number;
      return true;
    }
    std::uint64_t hash = 14695981039346656037u;  // FNV-1a
    for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211u;
    id = static_cast<std::int64_t>(hash >> 1);
    return true;
  }

  bool read_triple(std::array<std::int64_t, 3>& values) {
    values.fill(kUnknown);
    const char* const begin = at_;
    if (*at_ != '[') return skip_value();
    ++at_;
    for (std::int64_t& value : values) {
      space();
      if (!base::is_digit(*at_) || !read_integer(value)) break;
      space();
      if (*at_ != ',') break;
      ++at_;
    }
    if (*at_ == ']') return ++at_ <= end_;
    at_ = begin;
    return skip_value();
  }

  bool read_microseconds(std::int64_t& ns) {
    const char* const begin = at_;
    const char* at = begin + (*begin == '-' ? 1 : 0);
    std::uint64_t value = 0;
    const char* const digits = at;
    for (; base::is_digit(*at); ++at) value = value * 10 + static_cast<std::uint64_t>(*at - '0');
    const auto whole = at - digits;
    int places = 0;
    if (*at == '.') {
      for (++at; base::is_digit(*at) && places < 3; ++at, ++places)
        value = value * 10 + static_cast<std::uint64_t>(*at - '0');
    }
    if (!ends_scalar(*at) || whole == 0 || whole > 15 || at > end_) return read_number(ns, 3);
    for (; places < 3; ++places) value *= 10;
    ns = *begin == '-' ? -static_cast<std::int64_t>(value) : static_cast<std::int64_t>(value);
    at_ = at;
    return true;
  }

  bool read_integer(std::int64_t& result) {
    const char* at = at_;
    std::uint64_t value = 0;
    for (; base::is_digit(*at); ++at) value = value * 10 + static_cast<std::uint64_t>(*at - '0');
    if (!ends_scalar(*at) || at - at_ > 18 || at == at_ || at > end_) return read_number(result, 0);
    result = static_cast<std::int64_t>(value);
    at_ = at;
    return true;
  }

  // The long way: signs, exponents, texts, null; unknown and counted if it is no number.
  bool read_number(std::int64_t& result, int scale) {
    const char* const begin = at_;
    std::string_view text;
    bool escaped = false;
    const bool quoted = *at_ == '"';
    result = kUnknown;
    if (*at_ == '{' || *at_ == '[') return skip_value();
    if (quoted) {
      if (!read_string(text, escaped)) return false;
    } else if (text = read_scalar(); text.empty()) {
      return false;
    }
    if (!quoted && (text == "null" || text == "true" || text == "false")) return true;
    const auto value = scale == 0 ? integer(text) : scaled(text, scale);
    if (value) {
      result = *value;
    } else {
      out_.numbers_repaired.add(where(begin));
    }
    return true;
  }

  // A string as a text; another value as it is written.
  bool read_text(std::string_view& text) {
    if (*at_ != '"') return read_raw(text);
    const char* const begin = at_;
    bool escaped = false;
    if (!read_string(text, escaped)) return false;
    if (!escaped && !unclean_) return true;
    bool repaired = std::any_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20; });
    if (escaped || !is_utf8(text)) text = out_.texts.emplace_back(unescape(text, repaired));
    if (repaired) out_.texts_repaired.add(where(begin));
    return true;
  }

  // JSON text that is handed on as it is.
  std::string_view clean(std::string_view raw) {
    if (!unclean_ || is_utf8(raw)) return raw;
    return out_.texts.emplace_back(to_utf8(raw));
  }

  // What is between the quotes, as written.
  bool read_string(std::string_view& text, bool& escaped) {
    const char* const begin = ++at_;
    while (at_ < end_) {
#if defined(__SSE2__)
      const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(at_));
      const __m128i stops =
          _mm_or_si128(_mm_cmpeq_epi8(bytes, _mm_set1_epi8('"')), _mm_cmpeq_epi8(bytes, _mm_set1_epi8('\\')));
      const auto mask = static_cast<std::uint32_t>(_mm_movemask_epi8(stops));
      if (mask == 0) {
        at_ += 16;
        continue;
      }
      at_ += std::countr_zero(mask);
#endif
      if (*at_ == '"') {
        if (at_ >= end_) return false;
        text = between(begin, at_++);
        return true;
      }
      if (*at_ == '\\') {
        escaped = true;
        ++at_;
      }
      ++at_;
    }
    return false;
  }

  // Up to a comma, a closing bracket or white space.
  std::string_view read_scalar() {
    const char* const begin = at_;
    while (at_ < end_ && !ends_scalar(*at_) && *at_ != '"' && *at_ != '{' && *at_ != '[') ++at_;
    return between(begin, at_);
  }

  bool skip_value() {
    std::string_view text;
    bool escaped = false;
    if (*at_ == '"') return read_string(text, escaped);
    if (*at_ == '{' || *at_ == '[') return skip_brackets();
    const char* const begin = at_;
    text = read_scalar();
    if (text.empty()) return false;
    if (base::is_digit(text[0]) || (text[0] == '-' && text.size() > 1 && base::is_digit(text[1]))) return true;
    if (text != "null" && text != "true" && text != "false") out_.numbers_repaired.add(where(begin));
    return true;
  }

  // To behind the bracket that closes the one here.
  bool skip_brackets() {
    Strings strings;
    int depth = 0;
    for (; at_ < end_; at_ += kBlockBytes) {
      const Block block = classify(at_);
      const std::uint64_t outside = ~strings.mark(block).inside;
      const std::uint64_t open = block.open & outside;
      std::uint64_t close = block.close & outside;
      const int closes = std::popcount(close);
      if (closes < depth) {  // it cannot be here
        depth += std::popcount(open) - closes;
        continue;
      }
      int seen = 0;
      for (; close != 0; close &= close - 1) {
        const std::uint64_t before = (close & -close) - 1;
        if (depth + std::popcount(open & before) - ++seen > 0) continue;
        at_ += std::countr_zero(close) + 1;
        return at_ <= end_;
      }
      depth += std::popcount(open) - closes;
    }
    return false;
  }

  const char* const begin_;
  const char* at_;
  const char* const end_;
  const std::uint64_t offset_;
  const bool unclean_;
  Parsed& out_;
};

}  // namespace

void parse_events(std::string_view text, std::uint64_t offset, bool unclean, Parsed& out) {
  out.clear();
  Parser(text, offset, unclean, out).run();
}

}  // namespace llmprof::importers::chrome_json
