#pragma once
// A recording in a folder, as the tests of ingest make it: record.json, logs, then the run.

#include <memory>
#include <string>

#include "base/file.h"
#include "record/open_run.h"
#include "record/run/capture.h"
#include "record/run/ingest.h"
#include "record/testing/folder.h"
#include "record/testing/log_builder.h"
#include "trace/run.h"

namespace llmprof::record {

inline constexpr std::int64_t kBegin = 1'000'000;

inline CaptureInfo info_of(std::int64_t root_pid) {
  CaptureInfo info;
  info.llmprof_version = "0.0.0";
  info.command = {"python3", "serve.py"};
  info.executable = "/usr/bin/python3";
  info.environment = R"({"cpu":"test"})";
  info.root_pid = root_pid;
  info.root_start_ticks = 1;
  info.begin = {kBegin, 1'700'000'000'000'000'000, 50};
  info.end = ClockPair{kBegin + 1'000'000, 1'700'000'000'001'000'000, 50};
  info.exit_status = 3;
  info.cpu = {.kind = "cpu", .name = "Test CPU", .units = 2, .memory_bytes = 100, .cache_bytes = 10};
  info.peaks = {{"flops", "float32", 1e11, "FLOP/s", "measured", "test"}};
  return info;
}

// A recording in a folder, ingested and opened.
class Recording {
 public:
  Recording() : folder_(root_ / "x.llmprof") {}

  Recording& info(const CaptureInfo& info) {
    EXPECT_TRUE(base::make_directories(capture_folder(folder_)));
    EXPECT_TRUE(write_capture_info(capture_folder(folder_), info));
    return *this;
  }
  Recording& log(const std::string& name, const std::string& bytes) {
    root_.write("x.llmprof/capture/" + name, bytes);
    return *this;
  }
  const std::string& folder() const { return folder_; }

  // The rows of a query, cells joined by '|', NULL as "-".
  std::vector<std::string> rows(const std::string& sql) {
    if (!run_) {
      auto opened = open_run(folder_, base::no_progress);
      EXPECT_TRUE(opened) << (opened ? "" : opened.error().message);
      if (!opened) return {};
      run_ = std::make_unique<trace::Run>(std::move(*opened));
    }
    const auto table = run_->query(sql);
    EXPECT_TRUE(table) << (table ? "" : table.error().message);
    if (!table) return {};
    std::vector<std::string> lines;
    for (const auto& row : table->rows) lines.push_back(line_of(row));
    return lines;
  }
  const trace::Run& run() const { return *run_; }

 private:
  static std::string line_of(const std::vector<trace::Value>& row) {
    std::string line;
    for (const trace::Value& value : row) {
      if (!line.empty()) line += "|";
      switch (value.type) {
        case trace::Value::Type::kNull:
          line += "-";
          break;
        case trace::Value::Type::kInt:
          line += std::to_string(value.integer);
          break;
        case trace::Value::Type::kDouble:
          line += std::to_string(value.real);
          break;
        case trace::Value::Type::kBool:
          line += value.integer != 0 ? "true" : "false";
          break;
        case trace::Value::Type::kText:
          line += value.text;
          break;
      }
    }
    return line;
  }

  TestFolder root_;
  std::string folder_;
  std::unique_ptr<trace::Run> run_;
};

inline constexpr const char* kLosses = "SELECT name, count, coalesce(detail, '') FROM loss ORDER BY name, detail";

}  // namespace llmprof::record
