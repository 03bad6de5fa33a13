#pragma once
// The moments at which recording is switched on and off: by the recorder, which appends lines to the file `control`
// beside the logs ("NANOSECONDS on\n", some time ahead), or by the program itself (cudaProfilerStart and Stop).

#include <cstdint>

namespace llmprof::collect {

struct Switch {
  std::uint64_t ts_ns;  // CLOCK_MONOTONIC_RAW
  bool on;
};

// By the program, now. Any thread; some hundred between two looks of the writer are remembered.
void note_switch(bool on);

// Parses one line without its end. False: it says nothing.
bool parse_switch(const char* line, std::uint64_t length, Switch* out);

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
