#pragma once
// The frames of all call stacks of a run: each distinct place once, whatever log it came from. Frames that a collector
// could only give as a place in a file get their function when the run is finished, if the files may be opened.

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "trace/run_writer.h"

namespace llmprof::record {

class LogFrames {
 public:
  // The id of the frame; `offset` is its place in the file when it has no function. 0: there are too many.
  trace::Id id(trace::FrameRow row, std::uint64_t offset, trace::Id& next_id);

  // Writes the rows. `open_files`: functions are looked up in the files that the logs name.
  void finish(trace::RunWriter& writer, bool open_files);

 private:
  static constexpr std::size_t kMost = 1u << 20;

  struct Frame {
    trace::FrameRow row;
    std::uint64_t offset;
  };
  using Key = std::tuple<std::uint32_t, std::uint32_t, std::uint32_t, std::int32_t, std::uint64_t>;

  std::vector<Frame> frames_;
  std::map<Key, trace::Id> ids_;
};

}  // namespace llmprof::record
