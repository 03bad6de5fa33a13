#pragma once
// The moments at which recording is switched on and off: by the recorder, which appends lines to the file `control`
// beside the logs ("NANOSECONDS on\n", some time ahead), or by the program itself (cudaProfilerStart and Stop).

#include <string.h>

#include <cstdint>

namespace llmprof::collect {

struct Switch {
  std::uint64_t ts_ns;  // CLOCK_MONOTONIC_RAW
  bool on;
};

// By the program, now. Any thread; some hundred between two looks of the writer are remembered.
void note_switch(bool on);

// Parses one line without its end. False: it says nothing.
inline bool parse_switch(const char* line, std::uint64_t length, Switch* out) {
  std::uint64_t at = 0;
  out->ts_ns = 0;
  for (; at < length && line[at] >= '0' && line[at] <= '9'; ++at) {
    if (at == 19) return false;  // 10^19 does not fit
    out->ts_ns = out->ts_ns * 10 + static_cast<std::uint64_t>(line[at] - '0');
  }
  if (at == 0) return false;
  out->on = length - at == 3 && memcmp(line + at, " on", 3) == 0;
  return out->on || (length - at == 4 && memcmp(line + at, " off", 4) == 0);
}

// Owned by the writer.
class Switches {
 public:
  // Looks for new ones; what the file says is limited to what fits a buffer at a time.
  template <class Visit>
  void read(Visit visit) {
    Switch found;
    while (next_of_program(&found)) visit(found);
    refill();
    while (next_of_file(&found)) visit(found);
  }

 private:
  bool next_of_program(Switch* out);
  void refill();
  bool next_of_file(Switch* out);

  std::uint64_t offset_ = 0;         // in the file
  std::uint64_t at_ = 0, size_ = 0;  // in the buffer
  char buffer_[1024];
};

}  // namespace llmprof::collect
