#pragma once
// The logs of a capture folder, each opened once to see whose it is, and joined to chains: the logs of one process
// image that continue each other (wire::FileHeader::segment). Can be asked again while logs are being added.

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "record/ledger.h"
#include "wire/format.h"

namespace llmprof::record {

struct Log {
  std::string name;
  wire::FileHeader header{};
};

struct Chain {
  std::vector<Log> logs;   // by segment; the first may be missing: deleted because only the end was to be kept
  bool last_image = true;  // no later chain is of the same process

  const wire::FileHeader& header() const { return logs.front().header; }
};

class CaptureLogs {
 public:
  explicit CaptureLogs(std::string folder) : folder_(std::move(folder)) {}

  // Takes up the logs that are new. Those that cannot be read become losses when `complete`; until then they may be in
  // the making.
  void look(Ledger& ledger, bool complete);

  // In the order in which they were begun, but for those that were found later. Grows only.
  const std::vector<Chain>& chains() const { return chains_; }
  std::string path(const Log& log) const { return folder_ + "/" + log.name; }
  const std::string& folder() const { return folder_; }

 private:
  using Process = std::pair<std::uint64_t, std::uint64_t>;  // pid and start ticks
  void add(Log log);

  std::string folder_;
  std::set<std::string> known_;
  std::vector<Chain> chains_;
  std::map<Process, std::size_t> latest_;  // chain of each process
};

}  // namespace llmprof::record
