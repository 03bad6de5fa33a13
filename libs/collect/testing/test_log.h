#pragma once
// For tests: a capture folder read into plain vectors, and programs run under the collector.

#include <map>
#include <string>
#include <vector>

#include "wire/format.h"

namespace llmprof::collect::testing {

struct Entry {
  std::uint32_t thread;  // of its section
  wire::Record record;
};

struct Log {
  std::string path;
  wire::FileHeader header{};
  std::map<wire::StringId, std::string> names;
  std::vector<Entry> entries;  // in file order
  std::uint64_t damaged_bytes = 0, torn_bytes = 0;
  std::uint32_t missing_blocks = 0;
  std::size_t undefined_names = 0;  // names used before their definition

  std::vector<wire::RangeRecord> ranges() const;  // of all threads, by time
  std::vector<wire::RangeRecord> ranges(std::uint32_t thread) const;
  std::vector<wire::GemmRecord> gemms() const;
  std::uint64_t lost(wire::LossKind kind) const;
  std::size_t count(wire::RecordKind kind) const;
  bool ended() const;  // in order
  std::string name(wire::StringId id) const;
  std::uint32_t domain(const std::string& name) const;  // its number; 0 if there is none
};

Log read_log(const std::string& path);
std::vector<Log> read_folder(const std::string& folder);  // all logs, by name

// A folder of its own for one test, removed at the end.
class CaptureFolder {
 public:
  CaptureFolder();
  ~CaptureFolder();
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

struct Launch {
  std::vector<std::string> arguments;
  std::vector<std::string> environment;  // "NAME=value", added to what records into `folder`
  std::string preload;                   // other libraries: placed before ours, or after with `preload_after`
  bool preload_after = false;
  int kill_after_ms = -1;  // SIGKILL
};

// Runs the program under both libraries and waits; the wait status, and the standard output if asked for.
int run(const CaptureFolder& folder, const Launch& launch, std::string* output = nullptr);

std::string library_folder();
std::string client(const std::string& name);  // path of a test client

}  // namespace llmprof::collect::testing
