#include "importers/ncu_csv/csv_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "importers/input.h"
#include "importers/sink.h"

namespace llmprof::importers::ncu {

// More bytes behind those that are left; false at the end. Reads more at a time when a record did not fit.
Result<bool> CsvReader::fill() {
  if (ended_) return false;
  buffer_.erase(0, at_);
  at_ = 0;
  const std::size_t kept = buffer_.size();
  chunk_bytes_ = std::clamp(kept, kChunkBytes, std::max(kChunkBytes, max_record_bytes_ / 4));
  buffer_.resize(kept + chunk_bytes_);
  LLMPROF_LET(const std::size_t got, input_.read(buffer_.data() + kept, chunk_bytes_));
  buffer_.resize(kept + got);
  ended_ = got == 0;
  if (!sink_.progress(input_.stored_offset())) return Error{ErrorCode::kInterrupted, "interrupted", ""};
  return !ended_;
}

Result<CsvReader::Kind> CsvReader::next() {
  for (;;) {
    if (at_ == buffer_.size()) {
      LLMPROF_LET(const bool more, fill());
      if (!more) return Kind::kEnd;
    }
    line_number_ = next_line_;
    LLMPROF_LET(const Kind kind, buffer_[at_] == '"' ? take_record() : take_line());
    if (kind != Kind::kSkipped) return kind;
  }
}

void CsvReader::lose_row(const std::string& what) {
  sink_.lose(trace::Loss::kInputDamaged, 1, what, fmt::format("line {}", line_number_));
}

Result<CsvReader::Kind> CsvReader::take_record() {
  for (;;) {
    const Scan scan = scan_record();
    if (scan == Scan::kDone) break;
    if (scan == Scan::kMalformed) {
      lose_row("rows with a quote in the wrong place");
      LLMPROF_TRY(take_line());
      return Kind::kSkipped;
    }
    if (buffer_.size() - at_ > max_record_bytes_) return skip_long();
    LLMPROF_LET(const bool more, fill());
    if (!more && cut_) {  // the end stands inside a quoted field
      sink_.lose(trace::Loss::kInputTruncated, 1, "the last row is not complete", fmt::format("line {}", line_number_));
      at_ = buffer_.size();
      return Kind::kEnd;
    }
  }
  if (end_ - at_ > max_record_bytes_) return skip_long();
  next_line_ += static_cast<std::uint64_t>(std::count(buffer_.data() + at_, buffer_.data() + end_, '\n'));
  unescape();
  at_ = end_;
  return Kind::kRecord;
}

// Finds the fields of the record at at_. kMore: its end is not in the buffer; cut_: inside quotes.
CsvReader::Scan CsvReader::scan_record() {
  fields_.clear();
  escaped_.clear();
  cut_ = false;
  complete_ = true;
  const char* p = buffer_.data() + at_;
  const char* const end = buffer_.data() + buffer_.size();
  for (;;) {
    const char* begin = p;
    const char* stop = nullptr;
    if (p < end && *p == '"') {
      ++begin;
      bool doubled = false;
      for (stop = begin;; stop += 2, doubled = true) {
        stop = static_cast<const char*>(std::memchr(stop, '"', static_cast<std::size_t>(end - stop)));
        if (stop == nullptr) {
          cut_ = true;
          return Scan::kMore;
        }
        if (stop + 1 == end && !ended_) return Scan::kMore;
        if (stop + 1 == end || stop[1] != '"') break;
      }
      if (doubled) escaped_.push_back(static_cast<std::uint32_t>(fields_.size()));
      p = stop + 1;
    } else {
      while (p < end && *p != ',' && *p != '\n' && *p != '"') ++p;
      stop = p > begin && p < end && *p == '\n' && p[-1] == '\r' ? p - 1 : p;
    }
    fields_.emplace_back(begin, static_cast<std::size_t>(stop - begin));
    if (p < end && *p == ',') {
      ++p;
      continue;
    }
    if (p + 1 < end && *p == '\r' && p[1] == '\n') ++p;
    if (p == end || (p + 1 == end && *p == '\r')) {
      if (!ended_) return Scan::kMore;
      end_ = buffer_.size();
      complete_ = false;
      return Scan::kDone;
    }
    if (*p != '\n') return Scan::kMalformed;
    end_ = static_cast<std::size_t>(p + 1 - buffer_.data());
    return Scan::kDone;
  }
}

void CsvReader::unescape() {
  for (const std::uint32_t i : escaped_) {
    char* const begin = buffer_.data() + (fields_[i].data() - buffer_.data());
    char* out = begin;
    for (std::size_t from = 0; from < fields_[i].size(); ++from) {
      *out++ = begin[from];
      if (begin[from] == '"') ++from;
    }
    fields_[i] = std::string_view(begin, static_cast<std::size_t>(out - begin));
  }
}

Result<CsvReader::Kind> CsvReader::take_line() {
  for (std::size_t searched = 0;;) {
    const std::size_t end = buffer_.find('\n', at_ + searched);
    searched = buffer_.size() - at_;
    if (end == std::string::npos && searched > max_record_bytes_) return skip_long();
    if (end == std::string::npos) {
      LLMPROF_LET(const bool more, fill());
      if (more) continue;
    }
    line_ = std::string_view(buffer_).substr(at_, (end == std::string::npos ? buffer_.size() : end) - at_);
    if (line_.ends_with('\r')) line_.remove_suffix(1);
    at_ = end == std::string::npos ? buffer_.size() : end + 1;
    ++next_line_;
    return Kind::kLine;
  }
}

// Goes on behind the next newline: nothing that long is a row.
Result<CsvReader::Kind> CsvReader::skip_long() {
  lose_row(fmt::format("rows longer than {} MB", max_record_bytes_ >> 20));
  for (;;) {
    const std::size_t end = buffer_.find('\n', at_);
    if (end != std::string::npos) {
      at_ = end + 1;
      ++next_line_;
      return Kind::kSkipped;
    }
    at_ = buffer_.size();
    chunk_bytes_ = kChunkBytes;
    LLMPROF_LET(const bool more, fill());
    if (!more) return Kind::kEnd;
  }
}

}  // namespace llmprof::importers::ncu
