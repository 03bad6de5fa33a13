#pragma once
// Nsight Compute's CSV: its records, its columns, and the numbers and units it prints.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "importers/input.h"
#include "importers/sink.h"

namespace llmprof::importers::ncu {

// Records of a CSV text between lines that are none (what a tool or a program printed), in bounded memory. A record is
// taken for one when its line begins with a quote; quoted fields may hold commas, newlines and doubled quotes.
// Not thread-safe.
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

// Numbers and units as Nsight Compute prints them.

enum class ValueKind : std::uint8_t {
  kNumber,
  kAbsent,        // empty, n/a, nan, inf
  kText,          // "NVIDIA H200"
  kDecimalComma,  // "1.234,5": a locale that swaps points and commas
};
// "1,234.5" -> 1234.5; of "7 (3; 4)" (values of instances) the first.
ValueKind parse_value(std::string_view text, double& value);

struct Unit {
  double factor = 1;  // a value in the printed unit times this is in `name`
  std::string name;   // byte, byte/s, ns, hz, %, …; as printed where the unit is not known
};
// "Gbyte/s" -> {1e9, "byte/s"}, "us" -> {1e3, "ns"}, "Ghz" -> {1e9, "hz"}. Prefixes are powers of 1000.
Unit base_unit(std::string_view printed);

// "(128, 1, 1)"; false if it is not three numbers.
bool parse_triple(std::string_view text, std::int32_t (&values)[3]);

// What the columns and metrics of a CSV of Nsight Compute are, by their titles.
enum class Column : std::uint8_t {
  kIgnored,
  kMetric,
  kId,
  kPid,
  kProcess,
  kKernel,
  kStream,
  kBlock,
  kGrid,
  kDevice,
  kCapability,
  kMetricName,
  kMetricUnit,
  kMetricValue,
};
Column column_of(std::string_view title);

// What a metric gives beside its counter.
enum class Use : std::uint8_t { kNone, kDuration, kPasses, kRegisters, kStaticShared, kDynamicShared };
Use use_of(std::string_view metric);

}  // namespace llmprof::importers::ncu
