#pragma once
// Server-sent events (the WHATWG's text/event-stream), as their bytes arrive. Strict: a line that is neither a comment
// nor one of the four fields, and a line or event that is too long, are faults, counted and left out. Lines end with
// LF, CR LF or CR.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace llmprof::load {

class SseParser {
 public:
  static constexpr std::size_t kMostEventBytes = std::size_t{16} << 20;

  // Calls on_event(data) for every event that these bytes complete; the view ends with the call.
  template <class OnEvent>
  void feed(std::string_view bytes, OnEvent&& on_event) {
    while (!bytes.empty()) {
      if (skip_lf_ && bytes.front() == '\n') {
        skip_lf_ = false;
        bytes.remove_prefix(1);
        continue;
      }
      skip_lf_ = false;
      const std::size_t end = line_end(bytes);
      if (end == std::string_view::npos) return keep(bytes);
      std::string_view line = bytes.substr(0, end);
      if (!partial_.empty() || overlong_) {
        keep(line);
        line = partial_;
      }
      skip_lf_ = bytes[end] == '\r';
      bytes.remove_prefix(end + 1);
      if (take_line(line)) dispatch(on_event);
      partial_.clear();
    }
  }
  // The stream has ended: what has no empty line behind it is an event, too, as some servers end so.
  template <class OnEvent>
  void finish(OnEvent&& on_event) {
    if (!partial_.empty()) take_line(partial_);
    partial_.clear();
    dispatch(on_event);
  }

  std::int64_t faults() const { return faults_; }
  std::int64_t events() const { return events_; }

 private:
  static std::size_t line_end(std::string_view bytes) {
    const void* lf = std::memchr(bytes.data(), '\n', bytes.size());
    const std::size_t limit =
        lf == nullptr ? bytes.size() : static_cast<std::size_t>(static_cast<const char*>(lf) - bytes.data());
    if (const void* cr = std::memchr(bytes.data(), '\r', limit))
      return static_cast<std::size_t>(static_cast<const char*>(cr) - bytes.data());
    return lf == nullptr ? std::string_view::npos : limit;
  }
  template <class OnEvent>
  void dispatch(OnEvent&& on_event) {
    if (!has_data_) return;
    ++events_;
    on_event(std::string_view(data_));
    has_data_ = false;
    data_.clear();
  }
  void keep(std::string_view part);
  bool take_line(std::string_view line);  // true: an event is complete

  std::string partial_;  // of a line
  std::string data_;     // of an event
  bool has_data_ = false, skip_lf_ = false, first_ = true, overlong_ = false;
  std::int64_t faults_ = 0, events_ = 0;
};

}  // namespace llmprof::load
