#include "importers/json_values.h"

#include <fmt/format.h>

#include <cmath>

#include "base/errors.h"
#include "base/json.h"
#include "base/strings.h"

namespace llmprof::importers {
namespace {

constexpr std::size_t kChunkBytes = 1 << 20;
constexpr std::string_view kBetween = " \t\r\n,[]\xEF\xBB\xBF";  // values, elements; a byte order mark

// Words that Python writes and JSON does not know, as texts. nullopt: there is none.
std::optional<std::string> with_texts_for_words(std::string_view text) {
  static constexpr std::string_view kWords[] = {"NaN", "Infinity", "-Infinity"};
  if (!base::contains(text, "NaN") && !base::contains(text, "Infinity")) return std::nullopt;
  std::string out;
  out.reserve(text.size() + 16);
  bool in_string = false;
  for (std::size_t i = 0; i < text.size();) {
    if (in_string && text[i] == '\\') {
      out += text.substr(i, 2);
      i += 2;
      continue;
    }
    if (text[i] == '"') in_string = !in_string;
    std::string_view word;
    for (const std::string_view each : kWords) {
      if (!in_string && text.substr(i).starts_with(each)) word = each;
    }
    if (word.empty()) {
      out += text[i++];
      continue;
    }
    out += fmt::format("\"{}\"", word);
    i += word.size();
  }
  return out;
}

}  // namespace

std::string JsonValues::where() const { return fmt::format("byte {}", value_offset_); }

Error JsonValues::refuse(std::string_view is_no, std::string_view hint) const {
  return {ErrorCode::kCorruptInput,
          fmt::format("byte {}: {}", first_bad_.value_or(0), first_bad_ && found_ == 0 ? "not valid JSON" : is_no),
          std::string(hint)};
}

void JsonValues::damaged(std::string_view what) {
  if (!first_bad_) first_bad_ = value_offset_;
  ++bad_;
  sink_.lose(trace::Loss::kInputDamaged, 1, what, where());
}

// More bytes behind those that are there; what was used is dropped. False at the end.
Result<bool> JsonValues::fill() {
  if (ended_) return false;
  buffer_.erase(0, begin_);
  buffer_offset_ += begin_;
  at_ -= begin_;
  begin_ = 0;
  const std::size_t kept = buffer_.size();
  buffer_.resize(kept + kChunkBytes);
  LLMPROF_LET(const std::size_t got, input_.read(buffer_.data() + kept, kChunkBytes));
  buffer_.resize(kept + got);
  ended_ = got == 0;
  if (!sink_.progress(input_.stored_offset())) return Error{ErrorCode::kInterrupted, "interrupted", ""};
  return !ended_;
}

// From begin_ (a brace) to the brace that closes it: end_. A line break in a string, or a line that begins with a brace
// where no value can begin, is where a torn line ends: false, and end_ is where to go on. Also false at the end.
Result<bool> JsonValues::cut() {
  int depth = 0;
  char before = '\0';  // the last that is not blank
  bool in_string = false, escaped = false;
  at_ = begin_;
  for (bool line_begin = false;; ++at_) {
    if (at_ == buffer_.size()) {
      if (at_ - begin_ > kMaxValueBytes) break;
      LLMPROF_LET(const bool more, fill());
      if (!more) break;
    }
    const char c = buffer_[at_];
    if (in_string) {
      if (c == '\n') break;
      in_string = escaped || c != '"';
      escaped = !escaped && c == '\\';
      continue;
    }
    if (line_begin && c == '{' && depth > 0 && before != ',' && before != '[' && before != ':') break;
    line_begin = c == '\n';
    if (c != ' ' && c != '\t' && c != '\r' && c != '\n') before = c;
    if (c == '"') in_string = true;
    if (c == '{' || c == '[') ++depth;
    if ((c == '}' || c == ']') && --depth == 0) {
      end_ = at_ + 1;
      return true;
    }
  }
  end_ = at_;
  return false;
}

Result<bool> JsonValues::next(base::Json& value) {
  begin_ = end_;
  for (;;) {
    at_ = begin_;
    while (at_ < buffer_.size() && kBetween.find(buffer_[at_]) != std::string_view::npos) ++at_;
    begin_ = at_;
    if (at_ == buffer_.size()) {
      LLMPROF_LET(const bool more, fill());
      if (!more) return false;
      continue;
    }
    value_offset_ = buffer_offset_ + begin_;
    if (buffer_[begin_] != '{') {  // a stray value, or text: until something like an object
      damaged("text between values");
      begin_ = std::min(buffer_.find('{', begin_), buffer_.size());
      while (begin_ == buffer_.size()) {
        LLMPROF_LET(const bool more, fill());
        if (!more) return false;
        begin_ = std::min(buffer_.find('{', begin_), buffer_.size());
      }
      continue;
    }
    LLMPROF_LET(const bool whole, cut());
    if (!whole) {
      damaged(at_ - begin_ > kMaxValueBytes ? "values longer than 96 MiB" : "values that are cut");
      begin_ = end_;
      continue;
    }
    const std::string_view found = std::string_view(buffer_).substr(begin_, end_ - begin_);
    const std::optional<std::string> repaired = with_texts_for_words(found);
    Result<base::Json> parsed = base::parse_json(repaired ? *repaired : found, "");
    begin_ = end_;
    if (!parsed || !parsed->is_object()) {
      damaged("values that are not valid JSON");
      continue;
    }
    value = std::move(*parsed);
    ++found_;
    return true;
  }
}

const base::Json* member(const base::Json& object, std::string_view name) {
  const auto found = object.is_object() ? object.find(name) : object.end();
  return found == object.end() || found->is_null() ? nullptr : &*found;
}

std::optional<double> as_number(const base::Json& value) {
  if (!value.is_number()) return std::nullopt;
  const double result = value.get<double>();
  return std::isfinite(result) ? std::optional(result) : std::nullopt;
}

std::optional<double> number(const base::Json& object, std::string_view name) {
  const base::Json* value = member(object, name);
  return value == nullptr ? std::nullopt : as_number(*value);
}

std::optional<std::int64_t> whole(const base::Json& object, std::string_view name) {
  const base::Json* value = member(object, name);
  if (value == nullptr || !value->is_number()) return std::nullopt;
  if (value->is_number_unsigned()) {
    const auto large = value->get<std::uint64_t>();
    return large <= INT64_MAX ? std::optional(static_cast<std::int64_t>(large)) : std::nullopt;
  }
  return value->is_number_integer() ? std::optional(value->get<std::int64_t>()) : to_ns(value->get<double>(), 1);
}

std::string_view text(const base::Json& object, std::string_view name) {
  const base::Json* value = member(object, name);
  return value == nullptr || !value->is_string() ? std::string_view() : value->get_ref<const std::string&>();
}

const base::Json& array(const base::Json& object, std::string_view name) {
  static const base::Json empty = base::Json::array();
  const base::Json* value = member(object, name);
  return value == nullptr || !value->is_array() ? empty : *value;
}

std::optional<std::int64_t> to_ns(double value, double unit_ns) {
  const double ns = value * unit_ns;
  return std::isfinite(ns) && std::fabs(ns) < 9e18 ? std::optional<std::int64_t>(std::llround(ns)) : std::nullopt;
}

}  // namespace llmprof::importers
