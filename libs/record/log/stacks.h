#pragma once
// The call stacks that one log defines: each a frame called by a stack that was defined before. Rows are made of those
// that something refers to, each distinct stack of a process once.

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "record/log/names.h"
#include "trace/rows.h"
#include "trace/run_writer.h"
#include "wire/format.h"

namespace llmprof::record {

struct RunRows;

class LogStacks {
 public:
  LogStacks(RunRows& rows, LogNames& names);

  void take(const wire::FrameRecord& record);
  void take(const wire::StackRecord& record);
  // Numbers belong to one log.
  void next_log();

  // Of the run; nothing for 0 and for what was not defined.
  trace::OptionalId id(std::uint32_t number);
  std::uint64_t lost() const { return lost_; }

 private:
  static constexpr std::size_t kMost = 1u << 20;   // definitions, in a log that somebody else may have made
  static constexpr std::uint32_t kDeepest = 2048;  // frames of one stack

  struct Frame {
    trace::FrameRow row;
    std::uint64_t offset = 0;
    trace::Id id = 0;  // 0: no stack has it yet
  };
  struct Stack {
    std::uint32_t parent = 0, frame = 0, depth = 1;
    trace::Id place = 0;  // 0: nothing refers to it yet
    trace::Id id = 0;     // of its rows; 0: there are none yet
  };

  trace::Id place_of(std::uint32_t number);
  trace::Id frame_id(Frame& frame);
  trace::Id write(std::uint32_t number, trace::Id place);

  RunRows& rows_;
  LogNames& names_;
  trace::Name kinds_[4];
  std::unordered_map<std::uint32_t, Frame> frames_;
  std::unordered_map<std::uint32_t, Stack> stacks_;
  // Over all logs of the process: a stack is its caller's place and a frame; its row id once it was written.
  std::map<std::pair<trace::Id, trace::Id>, trace::Id> places_;
  std::unordered_map<trace::Id, trace::Id> written_;
  std::uint64_t lost_ = 0;
};

// The frames of all call stacks of a run: each distinct place once, whatever log it came from. Frames that a collector
// could only give as a place in a file get their function when the run is finished, if the files may be opened.
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
