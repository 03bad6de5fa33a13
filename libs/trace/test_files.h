#pragma once
// For tests that damage runs: their files as bytes, and why a run does not open.

#include <fstream>
#include <string>

#include "base/file.h"
#include "trace/run.h"

namespace llmprof::trace {

inline std::string why_not(const std::string& path) {
  const auto run = Run::open(path);
  return run ? "opened" : run.error().message;
}

inline std::string read(const std::string& path) { return *base::read_file(path, 1 << 20); }

inline void write(const std::string& path, const std::string& bytes) { std::ofstream(path, std::ios::binary) << bytes; }

}  // namespace llmprof::trace
