#pragma once
// Programs run by the benchmarks with and without the collector, and the logs they leave.

#include <fcntl.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>
#include <vector>

#include "wire/decode.h"

namespace llmprof::perf {

inline std::int64_t now_ns() {
  timespec time;
  clock_gettime(CLOCK_MONOTONIC_RAW, &time);
  return time.tv_sec * std::int64_t{1'000'000'000} + time.tv_nsec;
}

inline double percentile(std::vector<double> values, double share) {
  std::sort(values.begin(), values.end());
  return values[static_cast<std::size_t>(share * static_cast<double>(values.size() - 1) + 0.5)];
}

inline std::string machine() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    if (line.rfind("model name", 0) == 0) return line.substr(line.find(':') + 2);
  }
  return "unknown";
}

// The folder of this program: build/perf.
inline std::filesystem::path here() { return std::filesystem::canonical("/proc/self/exe").parent_path(); }

// A capture folder for one measurement.
class CaptureFolder {
 public:
  CaptureFolder() {
    path_ = (std::filesystem::temp_directory_path() / "llmprof-perf-XXXXXX").string();
    if (mkdtemp(path_.data()) == nullptr) std::perror("perf: no folder"), std::exit(1);
  }
  ~CaptureFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  CaptureFolder(const CaptureFolder&) = delete;
  CaptureFolder& operator=(const CaptureFolder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// What `llmprof record` sets for the program it starts; an empty folder: nothing.
inline void set_environment(const std::string& folder) {
  for (const char* name : {"LD_PRELOAD", "NVTX_INJECTION64_PATH", "LLMPROF_CAPTURE_DIR"}) unsetenv(name);
  if (folder.empty()) return;
  const std::string libraries = (here().parent_path() / "lib/llmprof").string();
  setenv("LD_PRELOAD", (libraries + "/libllmprof_blas.so").c_str(), 1);
  setenv("NVTX_INJECTION64_PATH", (libraries + "/libllmprof_inject.so").c_str(), 1);
  setenv("LLMPROF_CAPTURE_DIR", folder.c_str(), 1);
}

// Hands every intact block of every log in the folder to `take`.
inline void each_block(const std::string& folder, const std::function<void(const wire::Block&)>& take) {
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    std::ifstream file(entry.path(), std::ios::binary);
    std::vector<char> bytes(std::filesystem::file_size(entry.path()));
    file.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    const wire::Bytes log{reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()};
    wire::FileHeader header;
    if (wire::read_file_header(log, &header) != wire::HeaderStatus::kOk) continue;
    wire::BlockReader blocks(log, header.header_bytes);
    for (wire::Step step = blocks.next(); step.kind != wire::StepKind::kEnd; step = blocks.next()) {
      if (step.kind == wire::StepKind::kBlock) take(step.block);
    }
  }
}

}  // namespace llmprof::perf
