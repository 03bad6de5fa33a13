#pragma once
// Launches of CUDA graphs. Kineto gives all kernels of one the correlation of its launch, and mostly does not say which
// graph and node they are: launches that execute the same kernels in the same order are of one graph. Where the capture
// is in the file too, its calls are the nodes, if they are as many and of the same kinds: so products and stacks of a
// graph are known.

#include <cstdint>
#include <deque>
#include <optional>
#include <unordered_map>
#include <variant>
#include <vector>

#include "importers/chrome_json/id_map.h"
#include "importers/chrome_json/names.h"
#include "importers/chrome_json/ops.h"
#include "importers/sink.h"
#include "trace/join.h"

namespace llmprof::importers::chrome_json {

struct Launch : trace::Launch {
  bool graph = false;
};

// Something a device did, as far as it is known.
struct Work {
  std::variant<trace::KernelRow, trace::CopyRow> row;
  std::int64_t external_id = kUnknown, graph_node = kUnknown, graph = kUnknown;
};

enum class NodeKind : std::uint8_t { kKernel, kCopy, kFill };

class Graphs {
 public:
  static constexpr std::size_t kMaxOpen = 64;           // launches whose kernels may still come
  static constexpr std::size_t kMaxHeld = 100'000;      // kernels of those
  static constexpr std::size_t kMaxNodes = 500'000;     // of all graphs
  static constexpr std::size_t kMaxCaptured = 200'000;  // calls, of all captures
  static constexpr std::size_t kMaxCaptures = 4096;
  static constexpr std::size_t kMaxGraphs = 100'000;

  Graphs(Sink& sink, Names& names, Ops& ops) : sink_(sink), names_(names), ops_(ops) {}

  void launched(const Launch& launch, std::int64_t correlation);
  bool add(Work& work, std::int64_t correlation);  // false: the launch is no longer open

  void begin_capture(trace::Id thread_id);
  void end_capture(trace::Id thread_id);
  bool capturing() const { return !capturing_.empty(); }
  void call_while_capturing(const Launch& launch, NodeKind kind, std::int64_t external_id);

  void finish();

 private:
  struct Open {
    Launch launch;
    std::int64_t correlation = 0;
    std::vector<Work> works;
  };
  struct Call {  // captured
    Launch launch;
    std::int64_t external_id = kUnknown;
    NodeKind kind = NodeKind::kKernel;
  };
  struct Node {
    trace::GraphNodeRow row;
    std::optional<trace::Id> op_id;
  };
  struct Graph {
    trace::Id number = 0;
    std::vector<Node> nodes;  // in the order of their execution
  };

  static const Node* node_of(const Graph& graph, const Work& work, std::size_t place);
  void close_oldest();
  void close(Open& open);
  Graph& graph_of(const std::vector<Work>& works);
  std::vector<Node> nodes_of(trace::Id graph, const std::vector<Work>& works);
  const std::vector<Call>* capture_of(const std::vector<Work>& works) const;
  void place(Work& work, trace::Id launch_id, const Node* node, const Launch& launch);

  Sink& sink_;
  Names& names_;
  Ops& ops_;
  std::deque<Open> open_;
  std::size_t held_ = 0, nodes_ = 0, captured_ = 0;
  std::unordered_map<std::uint64_t, Graph> graphs_;             // by what they execute
  std::unordered_map<trace::Id, std::vector<Call>> capturing_;  // by thread
  std::vector<std::vector<Call>> captures_;
};

}  // namespace llmprof::importers::chrome_json
