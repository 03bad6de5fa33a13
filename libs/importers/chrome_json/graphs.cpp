#include "importers/chrome_json/graphs.h"

#include <algorithm>
#include <utility>

namespace llmprof::importers::chrome_json {
namespace {

std::int64_t begin_of(const Work& work) {
  return std::visit([](const auto& row) { return row.begin_ns; }, work.row);
}

trace::Name kernel_name(const Work& work) {
  const auto* const kernel = std::get_if<trace::KernelRow>(&work.row);
  return kernel == nullptr ? trace::Name{} : kernel->name;
}

bool is_kernel(const Work& work) { return std::holds_alternative<trace::KernelRow>(work.row); }

std::uint64_t key_of(const std::vector<Work>& works) {
  if (works.front().graph != kUnknown) return static_cast<std::uint64_t>(works.front().graph) | std::uint64_t{1} << 63;
  std::uint64_t key = works.size();
  for (const Work& work : works) {
    key = (key ^ kernel_name(work).id) * 0x9E3779B97F4A7C15U;
    if (work.graph_node != kUnknown) key ^= static_cast<std::uint64_t>(work.graph_node);
    key ^= key >> 29;
  }
  return key & ~(std::uint64_t{1} << 63);
}

}  // namespace

void Graphs::launched(const Launch& launch, std::int64_t correlation) {
  if (correlation == kUnknown) return;
  if (open_.size() >= kMaxOpen) close_oldest();
  open_.push_back({launch, correlation, {}});
}

bool Graphs::add(Work& work, std::int64_t correlation) {
  const auto found =
      std::find_if(open_.rbegin(), open_.rend(), [&](const Open& open) { return open.correlation == correlation; });
  if (found == open_.rend()) {
    sink_.lose(trace::Loss::kGraphUnknown, 1, "work of a graph far from its launch in the file");
    return false;
  }
  found->works.push_back(std::move(work));
  if (++held_ > kMaxHeld) close_oldest();
  return true;
}

void Graphs::begin_capture(trace::Id thread_id) { capturing_[thread_id].clear(); }

void Graphs::end_capture(trace::Id thread_id) {
  const auto found = capturing_.find(thread_id);
  if (found == capturing_.end()) return;
  if (captured_ + found->second.size() <= kMaxCaptured && captures_.size() < kMaxCaptures && !found->second.empty()) {
    captured_ += found->second.size();
    captures_.push_back(std::move(found->second));
  }
  capturing_.erase(found);
}

void Graphs::call_while_capturing(const Launch& launch, NodeKind kind, std::int64_t external_id) {
  const auto found = capturing_.find(launch.thread_id);
  if (found == capturing_.end() || found->second.size() >= kMaxCaptured) return;
  found->second.push_back({launch, external_id, kind});
}

void Graphs::close_oldest() {
  held_ -= open_.front().works.size();
  close(open_.front());
  open_.pop_front();
}

const std::vector<Graphs::Call>* Graphs::capture_of(const std::vector<Work>& works) const {
  const auto same = [](const Call& call, const Work& work) {
    return (call.kind == NodeKind::kKernel) == is_kernel(work);
  };
  for (auto capture = captures_.rbegin(); capture != captures_.rend(); ++capture) {
    if (std::equal(capture->begin(), capture->end(), works.begin(), works.end(), same)) return &*capture;
  }
  return nullptr;
}

std::vector<Graphs::Node> Graphs::nodes_of(trace::Id graph, const std::vector<Work>& works) {
  std::vector<Node> nodes;
  if (nodes_ + works.size() > kMaxNodes) {
    sink_.lose(trace::Loss::kDefinitionsFull, static_cast<std::int64_t>(works.size()), "nodes of graphs");
    return nodes;
  }
  nodes_ += works.size();
  const std::vector<Call>* const capture = capture_of(works);
  for (std::size_t i = 0; i < works.size(); ++i) {
    Node node;
    node.row.id = sink_.new_id();
    node.row.graph = graph;
    node.row.node = works[i].graph_node == kUnknown ? static_cast<std::int64_t>(i) : works[i].graph_node;
    node.row.name = kernel_name(works[i]);
    const auto* const copy = std::get_if<trace::CopyRow>(&works[i].row);
    node.row.kind = names_(copy == nullptr ? "kernel" : names_.text(copy->direction) == "fill" ? "memset" : "memcpy");
    if (capture != nullptr) {
      const Call& call = (*capture)[i];
      node.row.stack_id = trace::unless_0(call.launch.stack_id);
      if (call.kind == NodeKind::kKernel) node.row.gemm_id = ops_.captured(call.external_id);
      node.row.captured_ns = call.launch.begin_ns;
      node.row.thread_id = call.launch.thread_id;
      node.op_id = ops_.op_of(call.external_id);
    }
    sink_.add(node.row);
    nodes.push_back(node);
  }
  return nodes;
}

Graphs::Graph& Graphs::graph_of(const std::vector<Work>& works) {
  std::uint64_t key = key_of(works);
  if (graphs_.size() >= kMaxGraphs && !graphs_.contains(key)) {
    sink_.lose(trace::Loss::kDefinitionsFull, 1, "distinct graphs");
    key = 0;  // all others
  }
  const auto [found, fresh] = graphs_.try_emplace(key);
  if (fresh) {
    found->second.number = sink_.new_id();
    if (key != 0) found->second.nodes = nodes_of(found->second.number, works);
  }
  return found->second;
}

void Graphs::place(Work& work, trace::Id launch_id, const Node* node, const Launch& launch) {
  const auto external_op = ops_.op_of(work.external_id);
  std::visit(
      [&](auto& row) {
        trace::set_launch(row, &launch);
        row.graph_launch_id = launch_id;
        row.op_id = external_op;
        if (node == nullptr) return;
        row.graph_node_id = node->row.id;
        if (node->row.stack_id) row.stack_id = node->row.stack_id;
        if (node->op_id) row.op_id = node->op_id;
      },
      work.row);
  if (auto* const kernel = std::get_if<trace::KernelRow>(&work.row)) {
    if (node != nullptr) kernel->gemm_id = node->row.gemm_id;
    sink_.add(*kernel);
  } else {
    sink_.add(std::get<trace::CopyRow>(work.row));
  }
}

// By its number where the file says it, else by its place.
const Graphs::Node* Graphs::node_of(const Graph& graph, const Work& work, std::size_t place) {
  const auto fits = [&](const Node& node) { return work.graph_node == kUnknown || node.row.node == work.graph_node; };
  if (place < graph.nodes.size() && fits(graph.nodes[place])) return &graph.nodes[place];
  if (work.graph_node == kUnknown) return nullptr;
  const auto found = std::find_if(graph.nodes.begin(), graph.nodes.end(), fits);
  return found == graph.nodes.end() ? nullptr : &*found;
}

void Graphs::close(Open& open) {
  if (open.works.empty()) return;
  std::stable_sort(open.works.begin(), open.works.end(),
                   [](const Work& a, const Work& b) { return begin_of(a) < begin_of(b); });
  Graph& graph = graph_of(open.works);
  trace::GraphLaunch launch = std::visit(
      [&](const auto& first) { return trace::GraphLaunch(sink_.new_id(), graph.number, first, &open.launch); },
      open.works.front().row);
  for (const Work& work : open.works)
    std::visit([&](const auto& row) { launch.add_node(row.begin_ns, row.end_ns); }, work.row);
  sink_.add(launch.row);
  for (std::size_t i = 0; i < open.works.size(); ++i) {
    place(open.works[i], launch.row.id, node_of(graph, open.works[i], i), open.launch);
  }
}

void Graphs::finish() {
  for (Open& open : open_) close(open);
  open_.clear();
  held_ = 0;
}

}  // namespace llmprof::importers::chrome_json
