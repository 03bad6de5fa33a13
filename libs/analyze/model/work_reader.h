#pragma once
// Reads what devices executed, block after block in order of time, so that memory does not grow with the run: kernels,
// graph launches, and (for the owners of a step's time) copies and waits.

#include <future>
#include <vector>

#include "analyze/passes/attribute.h"
#include "analyze/passes/busy.h"
#include "analyze/steps/waterfall_feed.h"
#include "trace/run.h"

namespace llmprof::analyze {

struct WorkBlock {
  Kernels kernels;         // by begin
  GraphLaunches launches;  // by begin
  CopiesAndWaits others;
};

// Where to cut: windows of begin_ns. Finding them reads all begins, so it is done once for all readers.
Result<std::vector<Window>> work_blocks(const trace::Run& run);

// The next block is read while the caller works on this one: until it asks for it, the run belongs to the reader.
class WorkReader {
 public:
  enum class With : std::uint8_t {
    kTimes,  // of kernels: when and where they were launched and ended; in no order
    kCalls,  // and what tells the BLAS call they belong to
    kAll,    // and what is added up; and copies and waits
  };
  WorkReader(const trace::Run& run, std::vector<Window> blocks, With with)
      : run_(&run), blocks_(std::move(blocks)), with_(with) {}

  std::size_t size() const { return blocks_.size(); }
  const Window& window(std::size_t index) const { return blocks_[index]; }
  Result<WorkBlock> take();  // size() times

 private:
  void read_next();

  const trace::Run* run_;
  std::vector<Window> blocks_;
  With with_;
  std::size_t begun_ = 0;
  std::future<Result<WorkBlock>> next_;
};

}  // namespace llmprof::analyze
