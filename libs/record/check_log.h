#pragma once
// What one capture log holds, for `llmprof check LOG`.

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "record/ledger.h"
#include "record/log_reader.h"

namespace llmprof::record {

struct LogCheck {
  std::uint32_t version = 0;
  std::int64_t pid = 0;  // 0: the file header is damaged
  bool header_damaged = false;
  bool ended = false;                                         // the process ended in order
  std::int64_t first_ns = 0, last_ns = 0;                     // of ranges, BLAS calls and GPU work; 0 if none
  std::vector<std::pair<std::string, std::int64_t>> records;  // per kind, kinds that occur
  std::int64_t names = 0;                                     // string definitions
  std::int64_t lost_names = 0;                                // used, but not defined
  std::int64_t lost_definitions = 0;                          // the same of kernel shapes, GEMM shapes and stacks
  std::vector<LossTotal> losses;                              // as the collector wrote them
  LogStats stats;

  bool whole() const {
    return !header_damaged && stats.missing_blocks == 0 && stats.damaged_bytes == 0 && stats.torn_bytes == 0;
  }
};

Result<LogCheck> check_log(const std::string& path, const base::Progress& progress = base::no_progress);

// True if the file begins as a capture log does.
bool is_log(const std::string& path);

}  // namespace llmprof::record
