#include "importers/ncu_csv/csv_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstring>
#include <unordered_map>

#include "base/numbers.h"
#include "base/strings.h"

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

namespace {

bool is_absent(std::string_view text) {
  return text.empty() || text == "n/a" || text == "N/A" || text == "nan" || text == "-nan" || text == "inf" ||
         text == "-inf";
}

// Three digits behind every mark, and one to three before the first.
bool is_grouped(std::string_view text, char mark) {
  std::size_t run = 0;
  bool first = true;
  for (const char c : text) {
    if (base::is_digit(c)) {
      ++run;
    } else {
      if (c != mark || (first ? run < 1 || run > 3 : run != 3)) return false;
      first = false;
      run = 0;
    }
  }
  return !first && run == 3;
}

ValueKind exact(std::string_view text, double& value) {
  const auto number = base::parse_number<double>(text);
  if (!number) return ValueKind::kText;
  value = *number;
  return std::isfinite(value) ? ValueKind::kNumber : ValueKind::kAbsent;
}

// A number with commas, or something else altogether.
ValueKind parse_marked(std::string_view text, double& value) {
  const std::string_view sign = text.starts_with('-') || text.starts_with('+') ? text.substr(0, 1) : std::string_view{};
  const std::string_view body = text.substr(sign.size());
  for (const char c : body) {
    if (!base::is_digit(c) && c != '.' && c != ',') return exact(text, value);
  }
  const std::size_t comma = body.find(','), point = body.find('.');
  const bool several_points = body.find('.', std::min(point, body.size() - 1) + 1) != std::string_view::npos;
  if (comma == std::string_view::npos)
    return several_points && is_grouped(body, '.') ? ValueKind::kDecimalComma : exact(text, value);
  if (point < comma) return ValueKind::kDecimalComma;
  const std::string_view whole = body.substr(0, point);
  if (!is_grouped(whole, ',')) {
    const bool one_comma = body.find(',', comma + 1) == std::string_view::npos;
    return one_comma && point == std::string_view::npos ? ValueKind::kDecimalComma : ValueKind::kText;
  }
  if (several_points || body.find(',', whole.size()) != std::string_view::npos) return ValueKind::kText;
  std::array<char, 64> plain;
  std::size_t size = 0;
  if (body.size() + 1 > plain.size()) return ValueKind::kText;
  if (sign == "-") plain[size++] = '-';
  for (const char c : body) {
    if (c != ',') plain[size++] = c;
  }
  return exact(std::string_view(plain.data(), size), value);
}

struct Scaled {
  std::string_view printed;
  double factor;
  std::string_view base;
};

constexpr std::array kScaled{Scaled{"Kbyte", 1e3, "byte"},  Scaled{"Mbyte", 1e6, "byte"},  Scaled{"Gbyte", 1e9, "byte"},
                             Scaled{"Tbyte", 1e12, "byte"}, Scaled{"Pbyte", 1e15, "byte"}, Scaled{"Khz", 1e3, "hz"},
                             Scaled{"Mhz", 1e6, "hz"},      Scaled{"Ghz", 1e9, "hz"},      Scaled{"Thz", 1e12, "hz"},
                             Scaled{"nsecond", 1, "ns"},    Scaled{"us", 1e3, "ns"},       Scaled{"usecond", 1e3, "ns"},
                             Scaled{"ms", 1e6, "ns"},       Scaled{"msecond", 1e6, "ns"},  Scaled{"s", 1e9, "ns"},
                             Scaled{"sec", 1e9, "ns"},      Scaled{"second", 1e9, "ns"}};

constexpr std::array kPerTime{Scaled{"second", 1, "s"},    Scaled{"sec", 1, "s"},       Scaled{"msecond", 1e3, "s"},
                              Scaled{"ms", 1e3, "s"},      Scaled{"usecond", 1e6, "s"}, Scaled{"us", 1e6, "s"},
                              Scaled{"nsecond", 1e9, "s"}, Scaled{"ns", 1e9, "s"}};

}  // namespace

ValueKind parse_value(std::string_view text, double& value) {
  if (const std::size_t instances = text.find(" ("); instances != std::string_view::npos && instances > 0)
    text = text.substr(0, instances);
  // Most values are small whole numbers with or without commas.
  std::int64_t whole = 0;
  std::size_t run = 0, at = 0;
  bool grouped = false;
  constexpr std::size_t kFitting = 18;  // digits that fit whatever they are
  for (; at < text.size() && at < kFitting; ++at) {
    const char c = text[at];
    if (base::is_digit(c)) {
      whole = whole * 10 + (c - '0');
      ++run;
    } else if (c == ',' && (grouped ? run == 3 : run >= 1 && run <= 3)) {
      grouped = true;
      run = 0;
    } else {
      break;
    }
  }
  if (at == text.size() && at > 0 && (!grouped || run == 3)) {
    value = static_cast<double>(whole);
    return ValueKind::kNumber;
  }
  return is_absent(text) ? ValueKind::kAbsent : parse_marked(text, value);
}

Unit base_unit(std::string_view printed) {
  const std::size_t slash = printed.find('/');
  Unit unit{1, std::string(printed.substr(0, slash))};
  for (const Scaled& scaled : kScaled) {
    if (scaled.printed == unit.name) {
      unit = {scaled.factor, std::string(scaled.base)};
      break;
    }
  }
  if (slash == std::string_view::npos) return unit;
  std::string_view per = printed.substr(slash + 1);
  for (const Scaled& scaled : kPerTime) {
    if (scaled.printed == per) {
      unit.factor *= scaled.factor;
      per = scaled.base;
      break;
    }
  }
  if (unit.name == "cycle" && per == "s") return {unit.factor, "hz"};
  unit.name += "/" + std::string(per);
  return unit;
}

bool parse_triple(std::string_view text, std::int32_t (&values)[3]) {
  if (!text.starts_with('(')) return false;
  text.remove_prefix(1);
  for (int i = 0; i < 3; ++i) {
    text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
    const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), values[i]);
    if (failure != std::errc{} || end == text.data() + text.size() || *end != (i < 2 ? ',' : ')')) return false;
    text.remove_prefix(static_cast<std::size_t>(end - text.data()) + 1);
  }
  return true;
}

Column column_of(std::string_view title) {
  using enum Column;
  static const std::unordered_map<std::string_view, Column> kTitles{{"ID", kId},
                                                                    {"Process ID", kPid},
                                                                    {"Process Name", kProcess},
                                                                    {"Kernel Name", kKernel},
                                                                    {"Stream", kStream},
                                                                    {"Block Size", kBlock},
                                                                    {"Grid Size", kGrid},
                                                                    {"Device", kDevice},
                                                                    {"CC", kCapability},
                                                                    {"Metric Name", kMetricName},
                                                                    {"Metric Unit", kMetricUnit},
                                                                    {"Metric Value", kMetricValue},
                                                                    {"Host Name", kIgnored},
                                                                    {"Context", kIgnored},
                                                                    {"Section Name", kIgnored},
                                                                    {"Body Item Label", kIgnored}};
  if (const auto found = kTitles.find(title); found != kTitles.end()) return found->second;
  // NVTX columns; what says nothing about the kernel but about the machine it ran on.
  if (title.find(':') != std::string_view::npos || title.starts_with("Rule ") || title.starts_with("Estimated "))
    return Column::kIgnored;
  for (const std::string_view machine : {"device__", "numa__", "nvlink__", "c2clink__"}) {
    if (title.starts_with(machine)) return Column::kIgnored;
  }
  return Column::kMetric;
}

Use use_of(std::string_view metric) {
  if (metric == "gpu__time_duration.sum" || metric == "gpu__time_duration" || metric == "Duration")
    return Use::kDuration;
  if (metric == "gpu__time_duration.max" || metric == "gpu__time_duration.avg") return Use::kDuration;
  if (metric == "profiler__replayer_passes") return Use::kPasses;
  if (metric == "launch__registers_per_thread" || metric == "Registers Per Thread") return Use::kRegisters;
  if (metric == "launch__shared_mem_per_block_static" || metric == "Static Shared Memory Per Block")
    return Use::kStaticShared;
  if (metric == "launch__shared_mem_per_block_dynamic" || metric == "Dynamic Shared Memory Per Block")
    return Use::kDynamicShared;
  return Use::kNone;
}

}  // namespace llmprof::importers::ncu
