#pragma once
// A server's metrics beside the recording of it: read from its /metrics from time to time by a thread of the recorder,
// kept as text in the capture folder, and made rows of the table metric at ingest, on the recording's clock.

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <thread>

#include "base/result.h"
#include "record/log/ledger.h"
#include "record/run/capture.h"
#include "trace/run_writer.h"

namespace llmprof::record {

inline constexpr const char* kMetricsFile = "metrics.txt";  // of the capture folder

struct ScrapeTarget {
  std::string host, port, path;  // "" host: nothing is scraped
};
// "http://HOST[:PORT][/PATH]"; the port is 80, the path /metrics.
Result<ScrapeTarget> parse_scrape_url(std::string_view url);

struct ScrapeOptions {
  ScrapeTarget target;
  std::chrono::milliseconds every{1000};
};

class Scraper {
 public:
  Scraper(ScrapeOptions options, std::string capture_folder);
  ~Scraper() { stop(); }
  void start();  // the program runs
  // Notes what could not be read.
  void finish(CaptureInfo& info);

 private:
  void work();
  void scrape();
  void stop();

  ScrapeOptions options_;
  std::string file_;
  std::thread thread_;
  std::atomic<bool> stopping_{false};
  // Of the thread until it has ended.
  std::int64_t answered_ = 0, failed_ = 0;  // failed: since the first answer
  std::string problem_;                     // the last one
  bool full_ = false;
};

// What was scraped as rows: every series of every scrape.
void ingest_metrics(const std::string& capture_folder, trace::RunWriter& writer, trace::Id& next_id, Ledger& ledger);

}  // namespace llmprof::record
