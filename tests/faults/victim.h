#pragma once
// A program for fault tests. It numbers its events and keeps a ledger of them beside the recording, so that a test can
// tell what should have been recorded: name of the event = label, payload = stream << 32 | number in the stream.
// The ledger is a shared mapping: a killed program leaves it exact.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace fault {

inline constexpr std::size_t kTimes = 16384;  // of the last events, per stream

struct Slot {
  std::atomic<std::uint64_t> attempted;  // events begun
  std::atomic<std::uint64_t> done;       // events that returned
};

// What one process should have recorded. FAULT_LEDGER names the folder; the file is called like the label. Layout:
// u64 streams, u64 has_times, u64 pid, Slot[streams], then kTimes times in nanoseconds per stream.
class Ledger {
 public:
  explicit Ledger(const std::string& label, std::size_t streams = 1, bool times = false);

  void emit(std::size_t stream = 0);                                      // one numbered event
  void emit(std::size_t stream, std::uint64_t count, unsigned pause_us);  // with a pause after each
  const std::string& label() const { return label_; }

 private:
  std::string label_;
  Slot* slots_ = nullptr;
  std::uint64_t* times_ = nullptr;
};

using Arguments = std::vector<std::string>;
long number(const Arguments& arguments, std::size_t index, long fallback);

// Signal masks, ignored and caught signals, umask: must be the same with and without a profiler.
void print_process_state();

// One way to get into trouble. arguments[0] is the label. Returns the exit status.
struct Scenario {
  const char* name;
  int (*run)(const Arguments& arguments);
};
struct Scenarios {
  const Scenario* rows;
  std::size_t count;
};
Scenarios endings();
Scenarios processes();
Scenarios threads();
Scenarios limits();

}  // namespace fault
