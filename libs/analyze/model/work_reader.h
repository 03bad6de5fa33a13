#pragma once
// Reads what devices executed, block after block in order of time, so that memory does not grow with the run: kernels,
// graph launches, and (for the owners of a step's time) copies and waits.

#include <functional>
#include <future>
#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "analyze/passes/attribute.h"
#include "analyze/passes/busy.h"
#include "analyze/passes/classify.h"
#include "analyze/passes/graphs.h"
#include "analyze/passes/kernel_class.h"
#include "analyze/passes/match.h"
#include "base/result.h"
#include "model/model.h"
#include "trace/run.h"

namespace llmprof::analyze {

struct CopiesAndWaits {
  trace::Columns copies, waits;
};
Result<CopiesAndWaits> read_copies_and_waits(const trace::Run& run, Window slice);  // that begin in it

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

// The BLAS calls of a run as the matching passes want them, and the passes that launches of graphs make.

Result<ProcessOfThread> read_threads(const trace::Run& run);

struct RunCalls {
  Calls calls;                        // by thread, then by time
  std::vector<std::int64_t> gemm_id;  // of each
};

// Calls that executed when they were made, the first of them if `blocks` is not 0.
Result<RunCalls> read_calls(const trace::Run& run, const ProcessOfThread& process_of_thread, int blocks = 0);

// Calls of each graph that was launched; the graph stands in place of the thread.
Result<RunCalls> read_captured_calls(const trace::Run& run);

// A graph that holds one pass over the model makes one with every launch. Returns for each pass that was matched where
// it is now: passes come by thread, then by time. `others` are put among them.
Result<std::vector<std::int32_t>> add_launched_passes(const trace::Run& run, const Matches& captured,
                                                      const std::vector<MatchedPass>& others, Matches& matches);

// The graphs of a run, as the passes want them: their nodes, and where those execute in launches that were not recorded
// node by node.

struct GraphFacts {
  GraphNodes nodes;
  SharesOfGraphs shares;
  std::unordered_map<std::int64_t, Mix> mixes;  // by graph
};

Result<GraphFacts> read_graphs(const trace::Run& run);
// Needs the places of the nodes.
void make_mixes(const std::vector<trace::NodePlaceRow>& places, GraphFacts& graphs);
// Rows of node_share.
std::vector<trace::NodeShareRow> node_share_rows(const GraphFacts& graphs, trace::Strings& strings);

// Modules of BLAS calls, and steps where none are declared, told from the shapes of the calls (passes/match.h): for
// runs whose ranges name no modules. Calls that were captured into a graph are matched once for each graph; a launch of
// a graph that holds one pass over the model is a pass.

struct RunMatch {
  ShapeMatches calls;
  std::map<std::string, std::string> fused;          // operators of the model that one product did together
  std::map<std::string, double> recomputed;          // operators that backward passes compute again: of their layers
  std::map<std::int32_t, std::int64_t> logits_rows;  // of declared steps that do not say their size and hold one pass
};

// What some processes compute of the model: all of them the same, or each stage of a pipeline its layers.
struct ModelPart {
  const model::Graph* graph = nullptr;
  std::set<std::int64_t> processes;  // ids; empty: all, and it is the only part
};

// Adds inferred steps to `classified` if it has none that are passes over a model.
Result<RunMatch> match_run(const trace::Run& run, const std::vector<ModelPart>& parts,
                           const ProcessOfThread& process_of_thread, Classified& classified, trace::Strings& strings);

// Names of the kernels of these classes as a list of SQL, "'a', 'b'"; `where` is a further condition.
Result<std::string> kernel_names(const trace::Run& run, const std::function<bool(KernelClass)>& wanted,
                                 std::string_view where = "true");

}  // namespace llmprof::analyze
