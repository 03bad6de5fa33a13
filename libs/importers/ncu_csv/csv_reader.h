#pragma once
// Records of a CSV text between lines that are none (what a tool or a program printed), in bounded memory. A record is
// taken for one when its line begins with a quote; quoted fields may hold commas, newlines and doubled quotes.
// Not thread-safe.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace llmprof::importers {
class Input;
class Sink;
}  // namespace llmprof::importers

namespace llmprof::importers::ncu {

class CsvReader {
 public:
  static constexpr std::size_t kMaxRecordBytes = 100u << 20;
  enum class Kind { kEnd, kLine, kRecord, kSkipped };  // kSkipped: inside only

  CsvReader(Input& input, Sink& sink, std::size_t max_record_bytes = kMaxRecordBytes)
      : input_(input), sink_(sink), max_record_bytes_(max_record_bytes) {}

  Result<Kind> next();
  std::string_view line() const { return line_; }  // of kLine, without its end; valid until the next call
  const std::vector<std::string_view>& fields() const { return fields_; }  // of kRecord; valid until the next call
  bool complete() const { return complete_; }                 // false: the text ended before the record's line did
  std::uint64_t line_number() const { return line_number_; }  // where it begins, from 1

 private:
  static constexpr std::size_t kChunkBytes = 256 << 10;
  enum class Scan { kDone, kMore, kMalformed };
  Result<bool> fill();
  Scan scan_record();
  Result<Kind> take_record();
  Result<Kind> take_line();
  Result<Kind> skip_long();
  void lose_row(const std::string& what);
  void unescape();

  Input& input_;
  Sink& sink_;
  std::size_t max_record_bytes_;
  std::string buffer_;
  std::size_t at_ = 0, end_ = 0, chunk_bytes_ = kChunkBytes;
  bool ended_ = false, cut_ = false, complete_ = true;
  std::string_view line_;
  std::vector<std::string_view> fields_;
  std::vector<std::uint32_t> escaped_;  // fields with doubled quotes
  std::uint64_t line_number_ = 0, next_line_ = 1;
};

}  // namespace llmprof::importers::ncu
