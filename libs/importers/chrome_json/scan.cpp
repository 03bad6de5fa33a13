// The inner loop of the splitter: strings and brackets, 64 bytes at a time, and what to do when they do not fit
// together.
#include <algorithm>
#include <cstring>
#include <utility>

#include "base/strings.h"
#include "importers/chrome_json/chunks.h"

namespace llmprof::importers::chrome_json {
namespace {

constexpr std::size_t kResumeTail = 4 << 10;  // of text in front decides whether an event begins

bool is_event_key(std::string_view key) {
  constexpr std::string_view kKeys[] = {"ph", "name", "cat", "pid", "tid", "ts",   "dur",   "args",
                                        "id", "id2",  "s",   "bp",  "tts", "tdur", "cname", "sf"};
  return std::find(std::begin(kKeys), std::end(kKeys), key) != std::end(kKeys);
}

// A key of an event and a colon, behind white space.
bool key_follows(std::string_view text, std::size_t at) {
  while (at < text.size() && base::is_space(text[at])) ++at;
  if (at >= text.size() || text[at] != '"') return false;
  const std::size_t end = text.find('"', at + 1);
  if (end == std::string_view::npos || !is_event_key(text.substr(at + 1, end - at - 1))) return false;
  at = end + 1;
  while (at < text.size() && base::is_space(text[at])) ++at;
  return at < text.size() && text[at] == ':';
}

}  // namespace

std::size_t find_event(std::string_view text, std::size_t from) {
  for (std::size_t at = text.find('{', from); at != std::string_view::npos; at = text.find('{', at + 1)) {
    std::size_t before = at;
    while (before > 0 && base::is_space(text[before - 1])) --before;
    if (before > 0 && text[before - 1] == ',' && key_follows(text, at + 1)) return at;
  }
  return std::string_view::npos;
}

void Splitter::scan(char* data) {
  if (resuming_ && !resume(data)) return;
  while (!closed_at_ && !refused_ && scanned_ < size_) {
    const std::size_t left = size_ - scanned_;
    if (left < kBlockBytes && !ended_) return;
    if (left >= kBlockBytes) {
      scanned_ += scan_block(data, data + scanned_);
    } else {
      char last[kBlockBytes];
      std::memset(last, ' ', sizeof(last));
      std::memcpy(last, data + scanned_, left);
      scanned_ += scan_block(data, last);
      scanned_ = std::min(scanned_, size_);
    }
    if (resuming_ && !resume(data)) return;
  }
}

// Bytes used. Stops where the events end, or where something does not fit.
std::size_t Splitter::scan_block(char* data, const char* bytes) {
  const Block block = classify(bytes);
  const auto [quotes, inside] = strings_.mark(block);
  unclean_ |= (block.not_text | (block.control & inside)) != 0;
  // A string begins behind white space, a comma, a colon or a bracket, and ends in front of one. If not, a quote is
  // missing or one too many: found here, before everything behind it is turned inside out.
  const std::uint64_t begins = quotes & inside, ends = quotes & ~inside;
  const std::uint64_t before = block.gap | block.open, after = block.gap | block.close;
  const std::uint64_t misfits = (begins & ~(before << 1 | gap_before_)) | ((ends << 1 | string_ended_) & ~after);
  gap_before_ = before >> 63;
  string_ended_ = ends >> 63;
  std::uint64_t brackets = (block.open | block.close) & ~inside;
  if (misfits != 0) brackets &= (misfits & -misfits) - 1;
  for (; brackets != 0; brackets &= brackets - 1) {
    const std::size_t at = scanned_ + static_cast<std::size_t>(std::countr_zero(brackets));
    if (take_bracket(data, at)) continue;
    if (!closed_at_ && !refused_) damage(data, at);
    return at - scanned_;
  }
  if (misfits == 0) return kBlockBytes;
  const std::size_t at = scanned_ + static_cast<std::size_t>(std::countr_zero(misfits));
  damage(data, std::min(at, size_));
  return at - scanned_;
}

// false: it does not fit, or it is the one that closes the events.
bool Splitter::take_bracket(const char* data, std::size_t at) {
  const char c = data[at];
  if (c == '{' || c == '[') {
    if (depth_ == 0) {
      event_begin_ = at;
    } else if (kinds_[static_cast<std::size_t>(depth_ - 1)] == '{') {  // only a value may be a bracket
      std::size_t before = at - 1;
      while (before > event_begin_ && base::is_space(data[before])) --before;
      if (data[before] != ':') return false;
    }
    if (depth_ == kMaxDepth) {
      refused_ = too_deep(offset_ + at);
      return false;
    }
    kinds_[static_cast<std::size_t>(depth_++)] = c;
    return true;
  }
  if (depth_ == 0) {
    if (c == ']') closed_at_ = at;
    return false;
  }
  if (kinds_[static_cast<std::size_t>(depth_ - 1)] != c - 2) return false;  // in ASCII, what closes is two behind
  if (--depth_ == 0) event_begin_ = at + 1;
  return true;
}

// The event that is being read cannot be understood at `at`.
void Splitter::damage(char* data, std::size_t at) {
  if (depth_ == 0) event_begin_ = at;
  damaged_.add(offset_ + event_begin_);
  // What stands in front of `at` has been looked at; it is blanked up to there, but for a comma the next event needs.
  const std::size_t begin = std::exchange(event_begin_, at);
  std::size_t comma = at;
  while (comma > begin && base::is_space(data[comma - 1])) --comma;
  if (comma > begin && data[comma - 1] == ',') event_begin_ = comma - 1;
  std::memset(data + begin, ' ', event_begin_ - begin);
  resuming_ = true;
  depth_ = 0;
  strings_ = {};
  gap_before_ = 1;
  string_ended_ = 0;
}

// Looks for the next event from event_begin_ on; false: not found yet, everything but a short tail is blanked.
bool Splitter::resume(char* data) {
  const std::string_view text(data, size_);
  const std::size_t found = find_event(text, event_begin_);
  if (found == std::string_view::npos && ended_) {
    const auto last = std::find_if_not(text.rbegin(), text.rend(), base::is_space);
    if (last == text.rend() || (*last != ']' && *last != '}')) truncated_why_ = "the last event is not complete";
  }
  const std::size_t blank_to = found != std::string_view::npos ? found
                               : ended_                        ? size_
                                        : std::max(event_begin_, size_ - std::min(size_, kResumeTail));
  std::memset(data + event_begin_, ' ', blank_to - event_begin_);
  resuming_ = found == std::string_view::npos;
  scanned_ = resuming_ ? size_ : found;
  event_begin_ = blank_to;
  depth_ = resuming_ ? 1 : 0;
  return !resuming_;
}

}  // namespace llmprof::importers::chrome_json
