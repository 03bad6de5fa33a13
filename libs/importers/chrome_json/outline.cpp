#include "importers/chrome_json/outline.h"

#include <fmt/format.h>

#include <algorithm>

#include "importers/chrome_json/decimal.h"
#include "importers/text.h"

namespace llmprof::importers::chrome_json {
namespace {

constexpr std::size_t kMaxKeyBytes = 256;

bool is_space(char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  return text;
}

}  // namespace

Error too_deep(std::uint64_t offset) {
  return {ErrorCode::kCorruptInput, fmt::format("byte {}: brackets in more than {} levels", offset, kMaxDepth),
          "no profiler writes that; the file is damaged or not a trace"};
}

Error too_long(std::uint64_t offset) {
  return {ErrorCode::kCorruptInput,
          fmt::format("byte {}: a text or an event of more than {} MiB", offset, kMaxStringBytes >> 20),
          "no profiler writes that; the file is damaged or not a trace"};
}

Result<Outline::Step> Outline::take(std::string_view text, std::uint64_t offset) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (capturing_) {
      if (value_.size() < kMaxHeaderBytes) value_ += c;
      value_cut_ |= value_.size() >= kMaxHeaderBytes;
    }
    if (in_string_) {
      // A line that ends in a string: its quote was lost. Going on would turn everything inside out.
      if (c == '\n') {
        repaired_.add(offset + i);
        capturing_ = capturing_ && kinds_.size() > 1;
        value_cut_ |= capturing_;
      }
      if (++string_bytes_ > kMaxStringBytes) return too_long(offset + i);
      in_string_ = (c != '"' || escaped_) && c != '\n';
      escaped_ = c == '\\' && !escaped_;
      if (in_string_ && token_.size() < kMaxKeyBytes) token_ += c;
      continue;
    }
    if (c == '"') {
      in_string_ = true;
      escaped_ = false;
      string_bytes_ = 0;
      token_.clear();
    } else if (c == '{' || c == '[') {
      LLMPROF_LET(const bool events, take_bracket(c, offset + i));
      if (events) return Step{State::kEvents, i + 1};
    } else if (c == '}' || c == ']') {
      if (close_bracket()) return Step{State::kEnd, i + 1};
    } else if (c == ':' && !kinds_.empty() && kinds_.back() == '{') {
      key_ = token_;
      if (kinds_.size() == 1 && !capturing_) member_ = token_, value_.clear(), capturing_ = true;
    } else if (c == ',') {
      key_.clear();
      if (kinds_.size() == 1) end_member();
    }
  }
  return Step{State::kMore, text.size()};
}

// Whether it is the one that the events begin with.
Result<bool> Outline::take_bracket(char c, std::uint64_t offset) {
  const bool first = !started_;
  started_ = true;
  array_ |= first && c == '[';
  if (first && c == '[') return true;
  if (c == '[' && key_ == "traceEvents" && all_objects()) {
    capturing_ = false;
    key_.clear();
    return true;
  }
  key_.clear();
  if (kinds_.size() >= kMaxDepth) return too_deep(offset);
  kinds_.push_back(c);
  return false;
}

bool Outline::close_bracket() {
  if (kinds_.size() == 1) end_member();
  if (!kinds_.empty()) kinds_.pop_back();
  key_.clear();
  return kinds_.empty();
}

Outline::State Outline::events_closed() {
  if (!array_) return State::kMore;
  array_ = false;
  return State::kEnd;
}

bool Outline::all_objects() const {
  return std::all_of(kinds_.begin(), kinds_.end(), [](char kind) { return kind == '{'; });
}

void Outline::end_member() {
  if (!capturing_) return;
  capturing_ = false;
  std::string_view value = value_;
  value.remove_suffix(1);  // the comma or bracket behind it
  if (value_cut_) {
    ++left_out_;
  } else {
    keep(member_, trimmed(value));
  }
  value_cut_ = false;
}

void Outline::keep(std::string_view key, std::string_view value) {
  const std::string text = to_utf8(value);
  if (key == "baseTimeNanoseconds") {
    base_time_ = text;
  } else if (key == "deviceProperties") {
    device_properties_ = text;
  } else if (key == "distributedInfo") {
    distributed_info_ = text;
  } else if (key == "traceEvents") {
    ++left_out_;  // something that is no array
  } else if (other_.size() + key.size() + text.size() > kMaxHeaderBytes) {
    ++left_out_;
  } else {
    other_.pop_back();
    other_ += fmt::format("{}\"{}\":{}}}", other_.size() > 1 ? "," : "", to_utf8(key), text);
  }
}

Header Outline::header() const {
  Header header;
  std::string_view base = base_time_;
  if (base.size() >= 2 && base.front() == '"') base = base.substr(1, base.size() - 2);
  header.base_time_ns = scaled(base, 0);
  header.device_properties = device_properties_;
  header.distributed_info = distributed_info_;
  header.other = other_;
  return header;
}

}  // namespace llmprof::importers::chrome_json
