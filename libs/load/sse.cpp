#include "load/sse.h"

#include <utility>

namespace llmprof::load {

void SseParser::keep(std::string_view part) {
  if (overlong_) return;
  if (partial_.size() + part.size() > kMostEventBytes) {
    overlong_ = true;
    partial_.clear();
    return;
  }
  partial_.append(part);
}

bool SseParser::take_line(std::string_view line) {
  if (overlong_) {
    overlong_ = false;
    ++faults_;
    return false;
  }
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  if (std::exchange(first_, false) && line.starts_with(kByteOrderMark)) line.remove_prefix(kByteOrderMark.size());
  if (line.empty()) return true;
  const std::size_t colon = line.find(':');
  if (colon == 0) return false;  // a comment, which servers send to keep a connection alive
  const std::string_view field = line.substr(0, colon);
  if (field != "data") {
    if (field != "event" && field != "id" && field != "retry") ++faults_;
    return false;
  }
  std::string_view value = colon == std::string_view::npos ? std::string_view() : line.substr(colon + 1);
  if (value.starts_with(' ')) value.remove_prefix(1);
  if (data_.size() + value.size() >= kMostEventBytes) {
    ++faults_;
    return false;
  }
  if (has_data_) data_ += '\n';
  data_.append(value);
  has_data_ = true;
  return false;
}

}  // namespace llmprof::load
