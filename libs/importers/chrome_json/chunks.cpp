#include "importers/chrome_json/chunks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/strings.h"
#include "importers/chrome_json/scalars.h"
#include "importers/text.h"

namespace llmprof::importers::chrome_json {

namespace {

constexpr std::size_t kOutlineBytes = 64 << 10;  // read at a time
constexpr std::size_t kMaxKeyBytes = 256;

std::string_view encoding_of(std::string_view head) {
  if (head.size() < 4) return "";
  const auto zero = [&](std::size_t i) { return head[i] == '\0'; };
  if (head.starts_with(std::string_view("\xFF\xFE\0\0", 4)) || (!zero(0) && zero(1) && zero(2) && zero(3)))
    return "UTF-32 LE";
  if (head.starts_with(std::string_view("\0\0\xFE\xFF", 4)) || (zero(0) && zero(1) && zero(2) && !zero(3)))
    return "UTF-32 BE";
  if (head.starts_with("\xFF\xFE") || (!zero(0) && zero(1) && !zero(2) && zero(3))) return "UTF-16 LE";
  if (head.starts_with("\xFE\xFF") || (zero(0) && !zero(1) && zero(2) && !zero(3))) return "UTF-16 BE";
  return "";
}

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

void Chunk::reserve(std::size_t bytes, std::size_t keep) {
  if (bytes <= capacity_) return;
  auto larger = std::make_unique_for_overwrite<char[]>(bytes + kPaddingBytes);
  if (keep > 0) std::memcpy(larger.get(), bytes_.get(), keep);
  std::memset(larger.get() + bytes, '~', kPaddingBytes);
  bytes_ = std::move(larger);
  capacity_ = bytes;
}

void Chunk::shrink(std::size_t bytes) {
  if (capacity_ <= bytes) return;
  text = {};
  bytes_.reset();
  capacity_ = 0;
}

Result<bool> Splitter::next(Chunk& chunk) {
  chunk.text = {};
  while (mode_ != Mode::kDone && chunk.text.empty()) {
    switch (mode_) {
      case Mode::kStart:
        LLMPROF_TRY(start());
        break;
      case Mode::kOutline:
        LLMPROF_TRY(read_outline());
        break;
      case Mode::kEvents:
        LLMPROF_TRY(read_events(chunk));
        break;
      default:
        LLMPROF_TRY(read_tail());
    }
  }
  return !chunk.text.empty();
}

// A stream that breaks (a truncated gzip file) ends here; what was read is good.
Result<std::size_t> Splitter::read(char* out, std::size_t most) {
  if (ended_) return std::size_t{0};
  Result<std::size_t> got = input_.read(out, most);
  if (!got) {
    if (!events_found_) return got.error();
    truncated_why_ = got.error().message;
    ended_ = true;
    return std::size_t{0};
  }
  ended_ = *got < most;
  return got;
}

Result<void> Splitter::read_more() {
  const std::size_t had = rest_.size();
  rest_.resize(had + kOutlineBytes);
  Result<std::size_t> got = read(rest_.data() + had, kOutlineBytes);
  rest_.resize(had + (got ? *got : 0));
  if (!got) return got.error();
  return {};
}

Result<void> Splitter::start() {
  LLMPROF_TRY(read_more());
  if (const std::string_view encoding = encoding_of(rest_); !encoding.empty()) {
    return Error{ErrorCode::kUnsupported, fmt::format("byte 0: the text is in {}", encoding),
                 fmt::format("convert it: iconv -f {} -t UTF-8", encoding.substr(0, 6))};
  }
  std::size_t begin = rest_.starts_with("\xEF\xBB\xBF") ? 3 : 0;
  while (begin < rest_.size() && base::is_space(rest_[begin])) ++begin;
  if (begin == rest_.size() && !ended_) return {};  // more white space than a portion
  if (begin == rest_.size() || (rest_[begin] != '{' && rest_[begin] != '[')) {
    return Error{ErrorCode::kCorruptInput, fmt::format("byte {}: a trace in JSON begins with {{ or [", begin),
                 "give the file that the profiler wrote (export_chrome_trace of torch.profiler)"};
  }
  mode_ = Mode::kOutline;
  return {};
}

Result<void> Splitter::read_outline() {
  if (rest_.empty() && !ended_) LLMPROF_TRY(read_more());
  if (rest_.empty()) {
    mode_ = Mode::kDone;
    if (!events_found_) {
      return Error{ErrorCode::kCorruptInput, fmt::format("byte {}: the file ends before any traceEvents", offset_),
                   "the recording was stopped before it wrote its events"};
    }
    if (truncated_why_.empty()) truncated_why_ = "the end of the document is missing";
    return {};
  }
  LLMPROF_LET(const Outline::Step step, outline_.take(rest_, offset_));
  rest_.erase(0, step.used);
  offset_ += step.used;
  if (step.state == Outline::State::kEvents) {
    events_found_ = true;
    mode_ = Mode::kEvents;
    scanned_ = event_begin_ = 0;
    depth_ = 0;
    strings_ = {};
    gap_before_ = 1;
    string_ended_ = 0;
  } else if (step.state == Outline::State::kEnd) {
    mode_ = Mode::kTail;
    if (!events_found_) {
      return Error{ErrorCode::kCorruptInput, fmt::format("byte {}: the JSON object holds no traceEvents", offset_),
                   "this is JSON, but no trace of torch.profiler or in Chrome's format"};
    }
  }
  return {};
}

// Behind the document only white space may follow.
Result<void> Splitter::read_tail() {
  const auto found = std::find_if_not(rest_.begin(), rest_.end(), base::is_space);
  offset_ += static_cast<std::uint64_t>(found - rest_.begin());
  second_document_ = found != rest_.end();
  rest_.clear();
  if (!second_document_ && !ended_) LLMPROF_TRY(read_more());
  if (rest_.empty()) mode_ = Mode::kDone;
  return {};
}

Result<void> Splitter::read_events(Chunk& chunk) {
  chunk.reserve(std::max(chunk_bytes_, rest_.size() + chunk_bytes_ / 2), 0);
  std::memcpy(chunk.data(), rest_.data(), rest_.size());
  size_ = rest_.size();
  unclean_ = false;
  for (;;) {
    LLMPROF_LET(const std::size_t got, read(chunk.data() + size_, chunk.capacity() - size_));
    size_ += got;
    std::memset(chunk.data() + size_, '~', kPaddingBytes);
    scan(chunk.data());
    if (refused_) return *refused_;
    if (closed_at_) break;
    const std::size_t whole = depth_ > 0 || strings_.inside() ? event_begin_ : scanned_;
    if (ended_) {
      end_in_events();
      hand_over(chunk, whole);
      return {};
    }
    if (whole > 0) {
      hand_over(chunk, whole);
      return {};
    }
    if (size_ > kMaxStringBytes) return too_long(offset_ + event_begin_);
    chunk.reserve(std::min(chunk.capacity() * 2, kMaxStringBytes + chunk_bytes_), size_);
  }
  const std::size_t end = *std::exchange(closed_at_, std::nullopt);
  hand_over(chunk, end);
  rest_.erase(0, 1);
  ++offset_;
  mode_ = outline_.events_closed() == Outline::State::kEnd ? Mode::kTail : Mode::kOutline;
  return {};
}

// The first `bytes` become the chunk, the others wait.
void Splitter::hand_over(Chunk& chunk, std::size_t bytes) {
  rest_.assign(chunk.data() + bytes, size_ - bytes);
  chunk.text = {chunk.data(), bytes};
  chunk.offset = offset_;
  chunk.unclean = unclean_;
  offset_ += bytes;
  scanned_ -= std::min(scanned_, bytes);
  event_begin_ -= std::min(event_begin_, bytes);
}

void Splitter::end_in_events() {
  mode_ = Mode::kDone;
  if (!truncated_why_.empty() || resuming_) return;  // what is resumed was counted as damage
  if (depth_ > 0 || strings_.inside()) {
    truncated_why_ = "the last event is not complete";
  } else if (!outline_.array_form()) {
    truncated_why_ = "the end of the events is missing";
  }  // else: Chrome's format lets writers leave out the last bracket of an array
}

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
    keep(member_, base::trimmed(value));
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

// The inner loop of the splitter: strings and brackets, 64 bytes at a time, and what to do when they do not fit
// together.

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
