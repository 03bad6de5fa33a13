#pragma once
// The recorder's own log, capture/recorder.log: what it sees of the processes from outside, in the wire format, so that
// a recorder that is killed loses at most its last flush. One thread at a time.

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "wire/encode.h"

namespace llmprof::host {

inline constexpr std::string_view kHostLogName = "recorder.log";
inline constexpr std::uint64_t kUnreadable = UINT64_MAX;  // read_bytes and written_bytes that we may not read

class HostLog {
 public:
  // Creates `path`, which must not exist.
  static Result<HostLog> create(const std::string& path);
  static HostLog nowhere() { return HostLog(-1); }  // keeps nothing, for those who look only
  HostLog(HostLog&& other) noexcept;
  HostLog& operator=(HostLog&&) = delete;
  ~HostLog();  // flushes

  // The id of a name, defined in the log at its first use. Cut at wire::kMaxNameBytes.
  wire::StringId name(std::string_view text);
  // A new record, to be filled at once: log.add(wire::RecordKind::kNote).note = {…}.
  wire::Record& add(wire::RecordKind kind);

  // Writes what is buffered; to be called at least once a second. After an error nothing more is written.
  Result<void> flush();
  std::uint64_t bytes() const { return bytes_; }

 private:
  explicit HostLog(int descriptor);
  void make_room(std::size_t bytes);
  void add_pending();

  int descriptor_;
  std::vector<std::uint8_t> memory_;
  wire::BlockBuilder block_;
  std::vector<wire::Record> pending_;  // of one kind, encoded together
  std::map<std::string, wire::StringId, std::less<>> names_;
  std::uint32_t sequence_ = 0;
  std::uint64_t bytes_ = 0;
  bool failed_ = false;
};

}  // namespace llmprof::host
