#pragma once
// What devices did: kernels and copies, the calls that launched them, and the CUDA graphs they were part of.

#include <cstdint>
#include <deque>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <variant>
#include <vector>

#include "importers/chrome_json/event.h"
#include "importers/chrome_json/lanes.h"
#include "importers/chrome_json/lookup.h"
#include "importers/chrome_json/operators.h"
#include "importers/cuda_calls.h"
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

// Launches of CUDA graphs. Kineto gives all kernels of one the correlation of its launch, and mostly does not say which
// graph and node they are: launches that execute the same kernels in the same order are of one graph. Where the capture
// is in the file too, its calls are the nodes, if they are as many and of the same kinds: so products and stacks of a
// graph are known.
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

// Kernels and copies joined to the calls of the host that launched them, by correlation. Kineto writes a kernel shortly
// before its launch, others the launch first: whoever comes first waits.
class Launches {
 public:
  static constexpr std::size_t kMaxWaitingWork = 200'000;
  static constexpr std::size_t kMaxWaitingCalls = 700'000;

  Launches(Sink& sink, Ops& ops, Graphs& graphs) : sink_(sink), ops_(ops), graphs_(graphs) {}

  void executed(Work work, std::int64_t correlation);
  void called(const Launch& launch, std::int64_t correlation);
  // Whether something that a device did waits for this call.
  bool waits_for(std::int64_t correlation) { return waiting_ids_.find(correlation) != nullptr; }
  std::int64_t works() const { return works_; }
  void finish();

 private:
  struct Waiting {
    Work work;
    std::uint32_t next = 0;  // of the same launch; 0: none
  };
  void wait(Work work, std::int64_t correlation);
  void join(Work& work, const Launch& launch, std::int64_t correlation);
  void emit(Work& work);

  Sink& sink_;
  Ops& ops_;
  Graphs& graphs_;
  std::int64_t works_ = 0;
  std::vector<Waiting> waiting_{1};  // 0 is nobody
  std::vector<std::uint32_t> free_;
  IdMap<std::uint32_t> waiting_ids_{kMaxWaitingWork};
  IdMap<Launch> calls_{kMaxWaitingCalls};
};

// Events of devices to rows: kernels, copies and fills, as Kineto and as XLA write them.

Work kernel_of(const Event& event, std::int64_t end_ns, Lanes& lanes, Names& names, trace::Id id);
Work copy_of(const Event& event, std::int64_t end_ns, Lanes& lanes, Names& names, trace::Id id);

// "Memcpy HtoD (Pinned -> Device)", "MemcpyD2H", "Memset (Device)" -> "host_to_device", …; "" if it does not say.
std::string_view copy_direction(std::string_view name);

// The number behind a key in text that is not parsed further: integer_in(R"("correlation_id":"7")",
// "correlation_id\"").
std::int64_t integer_in(std::string_view text, std::string_view key);
// Fills what XLA writes as text: "regs:43 static_shared:0 dynamic_shared:36864 grid:352,1,1 block:128,1,1".
void take_xla_details(std::string_view raw, Work& work);

}  // namespace llmprof::importers::chrome_json
