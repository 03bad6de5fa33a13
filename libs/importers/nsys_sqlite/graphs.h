#pragma once
// CUDA graphs. With --cuda-graph-trace=node kernels and copies name the node they execute, and the work of one launch
// shares the correlation id of its cudaGraphLaunch; with =graph a launch has one row of its own and no work inside.
// The number of a node holds that of its graph in the upper 32 bits.

#include <map>
#include <unordered_map>
#include <utility>

#include "importers/nsys_sqlite/actors.h"
#include "importers/nsys_sqlite/launches.h"
#include "trace/join.h"

namespace llmprof::importers::nsys {

class Graphs {
 public:
  Graphs(Database& database, Actors& actors) : database_(database), actors_(actors) {}

  // CUDA_GRAPH_NODE_EVENTS: when and by whom nodes were made, and which ones are clones of others.
  Result<void> read_nodes();

  enum class Kind : std::uint8_t { kUnknown, kKernel, kMemcpy, kMemset };
  struct Work {
    Actors::Index process = 0;
    std::int64_t node = 0;
    std::uint32_t correlation = 0;
    Kind kind = Kind::kUnknown;
    trace::Name name;
    std::int64_t begin_ns = 0, end_ns = 0;
    trace::Id device_id = 0;
    std::int64_t stream = 0;
    std::optional<trace::Launch> launch;
  };
  struct Ids {
    trace::OptionalId launch, node;
  };
  // Work of a node: which launch and node it belongs to.
  Ids take(const Work& work);
  // The number of an executable graph in this file.
  std::int64_t graph_id(Actors::Index process, std::int64_t graph);
  void write();

 private:
  struct Node {
    trace::Id id = 0;
    std::int64_t original = -1;
    trace::OptionalInt created_ns;
    Actors::Index thread = 0;
    Kind kind = Kind::kUnknown;
    trace::Name name;
  };
  struct Hash {
    std::size_t operator()(const std::pair<Actors::Index, std::int64_t>& key) const {
      return (static_cast<std::size_t>(key.second) ^ std::size_t{key.first} << 48) * 0x9E3779B97F4A7C15u;
    }
  };
  using NodeKey = std::pair<Actors::Index, std::int64_t>;
  Node* node(const NodeKey& key);
  void write_node(const NodeKey& key, const Node& node);

  Database& database_;
  Actors& actors_;
  std::unordered_map<NodeKey, Node, Hash> nodes_;
  trace::GraphLaunches launches_{1'000'000};  // by process and correlation id
  std::map<NodeKey, std::int64_t> graphs_;
};

}  // namespace llmprof::importers::nsys
