#pragma once
// Metrics as text, line by line and scrape by scrape.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/prometheus.h"
#include "importers/telemetry_csv/device_readings.h"

namespace llmprof::importers {

using base::CommentLine;
using base::SampleLine;

// The lines of one or several scrapes as rows of `metric`, and of `telemetry` where they are readings of a GPU.
class Scrapes {
 public:
  static constexpr std::size_t kMaxSeries = 1'000'000;
  static constexpr std::size_t kMaxFamilies = 100'000;

  explicit Scrapes(Sink& sink, std::size_t max_series = kMaxSeries)
      : sink_(sink), devices_(sink), max_series_(max_series) {}

  void line(std::string_view text, const std::string& where);
  void finish();
  std::int64_t values() const { return values_; }

 private:
  struct Family {
    trace::Name kind, unit;
    std::int64_t typed_in = 0;  // scrape
  };
  struct Series {
    std::int64_t scrape = 0;
    std::optional<std::int64_t> ts_ns;
  };
  void comment(std::string_view text);
  void sample(const SampleLine& sample, const std::string& where);
  bool repeated(const SampleLine& sample, const std::string& where);
  const Family* family_of(std::string_view name) const;
  void write(const SampleLine& sample);
  std::optional<trace::Id> device_of(const SampleLine& sample);
  void set_clock(bool times);

  Sink& sink_;
  DeviceReadings devices_;
  std::size_t max_series_;
  std::unordered_map<std::string, Family> families_;
  std::unordered_map<std::uint64_t, Series> series_;  // by hash of name and labels
  std::int64_t scrape_ = 1, values_ = 0, exemplars_ = 0, untimed_readings_ = 0;
  bool clock_set_ = false;
};

}  // namespace llmprof::importers
