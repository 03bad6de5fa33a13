#pragma once
// For tests: a folder that goes away, and a small run in it.

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "trace/run.h"
#include "trace/run_writer.h"

namespace llmprof::trace {

class TestFolder {
 public:
  TestFolder() {
    std::string pattern = std::filesystem::temp_directory_path() / "llmprof_trace_XXXXXX";
    path_ = ::mkdtemp(pattern.data());
  }
  TestFolder(const TestFolder&) = delete;
  TestFolder& operator=(const TestFolder&) = delete;
  ~TestFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

// Two threads of one process on a GPU: three kernels, two ranges (one inside the other), a loss.
inline void add_small_run(RunWriter& writer) {
  const auto name = [&](std::string_view text) { return writer.strings().intern(text); };
  writer.add(
      ProcessRow{.id = 1, .pid = 4242, .executable = name("/usr/bin/serve"), .begin_ns = 1000, .injected = true});
  writer.add(ThreadRow{.id = 1, .process_id = 1, .tid = 4242, .name = name("main"), .begin_ns = 1000});
  writer.add(ThreadRow{.id = 2, .process_id = 1, .tid = 4243, .begin_ns = 1000});
  writer.add(DeviceRow{.id = 1, .kind = name("gpu"), .name = name("Test GPU"), .units = 108});
  writer.add(KernelRow{.id = 12,
                       .begin_ns = 3000,
                       .end_ns = 3500,
                       .name = name("softmax"),
                       .device_id = 1,
                       .stream = 7,
                       .thread_id = 2});
  writer.add(KernelRow{.id = 11,
                       .begin_ns = 2000,
                       .end_ns = 2900,
                       .name = name("gemm"),
                       .device_id = 1,
                       .stream = 7,
                       .thread_id = 1,
                       .launch_begin_ns = 1500,
                       .launch_end_ns = 1600,
                       .grid_x = 128});
  writer.add(
      KernelRow{.id = 10, .begin_ns = 1700, .end_ns = 1900, .name = name("gemm"), .device_id = 1, .thread_id = 1});
  writer.add(RangeRow{.id = 21,
                      .begin_ns = 1200,
                      .end_ns = 1800,
                      .name = name("mlp"),
                      .process_id = 1,
                      .thread_id = 1,
                      .parent_id = 20,
                      .depth = 1});
  writer.add(
      RangeRow{.id = 20, .begin_ns = 1100, .end_ns = 4000, .name = name("decode"), .process_id = 1, .thread_id = 1});
  writer.add(LossRow{
      .id = 1, .name = name("buffer_full"), .severity = name("data_loss"), .count = 3, .unit = name("records")});
}

inline void make_small_run(const std::string& folder) {
  auto writer = RunWriter::create(folder);
  ASSERT_TRUE(writer) << writer.error().message;
  add_small_run(*writer);
  const auto finished =
      writer->finish({.command = {"serve", "--port", "1"}, .environment = R"({"cpu": "test"})", .source = "test"});
  ASSERT_TRUE(finished) << finished.error().message;
}

}  // namespace llmprof::trace
