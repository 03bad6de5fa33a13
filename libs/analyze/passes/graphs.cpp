#include "analyze/passes/graphs.h"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>
#include <unordered_set>

namespace llmprof::analyze {

namespace {

struct Timed {
  std::int64_t node_id = 0, samples = 0;
  double begin_ns = 0, end_ns = 0;
  ShareBasis basis = ShareBasis::kSameGraph;
};

std::size_t place_of(const GraphNodes& nodes, std::int64_t id) {  // size() if it is not there
  const auto found = std::lower_bound(nodes.id.begin(), nodes.id.end(), id);
  return found == nodes.id.end() || *found != id ? nodes.size() : static_cast<std::size_t>(found - nodes.id.begin());
}

// Measured nodes of each graph; graphs without any take those of a graph with the same captured nodes.
std::unordered_map<std::int64_t, std::vector<Timed>> timed_nodes(const GraphNodes& nodes, const NodeTimes& times) {
  std::unordered_map<std::int64_t, std::vector<Timed>> graphs;
  // The most often measured clone of each captured node. Processes count nodes alike, but do not capture at one moment.
  std::map<std::pair<std::int64_t, std::int64_t>, Timed> by_capture;
  const auto capture_of = [&](std::size_t i) { return std::pair(nodes.captured_node[i], nodes.captured_ns[i]); };
  for (std::size_t i = 0; i < times.size(); ++i) {
    const Timed timed{.node_id = times.node_id[i],
                      .samples = times.samples[i],
                      .begin_ns = static_cast<double>(times.begin_ns[i]),
                      .end_ns = static_cast<double>(times.end_ns[i])};
    graphs[times.graph[i]].push_back(timed);
    const std::size_t place = place_of(nodes, timed.node_id);
    if (place == nodes.size() || nodes.captured_node[place] == kNull) continue;
    Timed& best = by_capture[capture_of(place)];
    if (timed.samples > best.samples) best = timed;
  }
  // A kernel that no measured graph has is not of that capture: the graph was updated. One that did not run then (in a
  // branch) is.
  std::set<std::pair<std::int64_t, std::int64_t>> in_measured;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (graphs.contains(nodes.graph[i]) && nodes.captured_node[i] != kNull) in_measured.insert(capture_of(i));
  }
  std::unordered_set<std::int64_t> others;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (nodes.kind[i] == NodeKind::kKernel && !in_measured.contains(capture_of(i))) others.insert(nodes.graph[i]);
  }
  std::unordered_map<std::int64_t, std::vector<Timed>> inherited;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (graphs.contains(nodes.graph[i]) || others.contains(nodes.graph[i]) || nodes.captured_node[i] == kNull) continue;
    const auto found = by_capture.find(capture_of(i));
    if (found == by_capture.end()) continue;
    Timed timed = found->second;
    timed.node_id = nodes.id[i];
    timed.basis = ShareBasis::kSameCapture;
    inherited[nodes.graph[i]].push_back(timed);
  }
  graphs.merge(inherited);
  return graphs;
}

struct Span {
  double covered_ns = 0, gaps_ns = 0;
};

bool is_kernel(const GraphNodes& all, std::int64_t node_id) {
  const std::size_t place = place_of(all, node_id);
  return place == all.size() || all.kind[place] == NodeKind::kKernel;
}

Span span_of(const std::vector<Timed>& nodes, bool only_kernels, const GraphNodes& all) {  // by begin
  Span span;
  double covered_until = nodes.front().begin_ns;
  for (const Timed& node : nodes) {
    if (only_kernels && !is_kernel(all, node.node_id)) continue;
    span.gaps_ns += std::max(0.0, node.begin_ns - covered_until);
    span.covered_ns += std::max(0.0, node.end_ns - std::max(node.begin_ns, covered_until));
    covered_until = std::max(covered_until, node.end_ns);
  }
  return span;
}

// Gaps shrink (or grow) so that the whole takes as long as a typical launch; if the nodes alone take longer, all
// shrink.
GraphShares scaled(std::vector<Timed> nodes, std::int64_t typical_ns, const GraphNodes& all) {
  std::ranges::sort(nodes, {}, [](const Timed& node) { return std::pair(node.begin_ns, node.node_id); });
  const Span span = span_of(nodes, false, all);
  const double left = std::max(0.0, static_cast<double>(typical_ns) - span.covered_ns);
  const double of_gaps = span.gaps_ns > 0 ? left / span.gaps_ns : 0;
  const double whole = span.covered_ns + of_gaps * span.gaps_ns;
  GraphShares out;
  double covered_until = nodes.front().begin_ns, shift = nodes.front().begin_ns;
  for (const Timed& node : nodes) {
    const double gap = std::max(0.0, node.begin_ns - covered_until);
    shift += gap * (1 - of_gaps);
    covered_until = std::max(covered_until, node.end_ns);
    NodeShare share{.node_id = node.node_id, .samples = node.samples, .basis = node.basis};
    if (whole > 0) {
      share.begin = std::clamp((node.begin_ns - shift) / whole, 0.0, 1.0);
      share.end = std::clamp((node.end_ns - shift) / whole, 0.0, 1.0);
    }
    if (is_kernel(all, node.node_id)) {
      ++out.kernels;
      out.kernel_time += share.length();
    }
    out.nodes.push_back(share);
  }
  out.busy = whole > 0 ? span_of(nodes, true, all).covered_ns / whole : 0;
  return out;
}

}  // namespace

// Kernels take other times alone than in a graph, above all small ones. Three launches and more agree with each other
// to a few percent; one alone may have been disturbed.
double NodeShare::confidence() const {
  if (basis == ShareBasis::kKernelsOutside || basis == ShareBasis::kOtherGraphs) return samples > 0 ? 0.6 : 0.4;
  const double measured = samples >= 3 ? 0.9 : 0.7;
  return basis == ShareBasis::kSameGraph ? measured : measured - 0.2;
}

SharesOfGraphs shares_of(const GraphNodes& nodes, const NodeTimes& times,
                         const std::unordered_map<std::int64_t, std::int64_t>& typical_ns) {
  SharesOfGraphs shares;
  for (auto& [graph, timed] : timed_nodes(nodes, times)) {
    const auto typical = typical_ns.find(graph);
    if (typical != typical_ns.end()) shares[graph] = scaled(std::move(timed), typical->second, nodes);
  }
  return shares;
}

GraphShares shares_of_sequence(const NodeSequence& sequence, const GraphNodes& all) {
  std::vector<Timed> nodes;
  double at_ns = 0;
  for (std::size_t i = 0; i < sequence.node_ids.size(); ++i) {
    nodes.push_back({.node_id = sequence.node_ids[i],
                     .samples = sequence.samples,
                     .begin_ns = at_ns,
                     .end_ns = at_ns + sequence.duration_ns[i],
                     .basis = sequence.basis});
    at_ns += sequence.duration_ns[i];
  }
  return scaled(std::move(nodes), static_cast<std::int64_t>(at_ns), all);
}

Mix mix_of(const GraphShares& shares, const GraphNodes& nodes,
           const std::unordered_map<std::int64_t, trace::Name>& op_of_node) {
  Mix mix;
  double covered_until = 0, owned = 0;
  for (const NodeShare& node : shares.nodes) {
    const double share = node.end - std::max(node.begin, covered_until);
    covered_until = std::max(covered_until, node.end);
    if (share <= 0) continue;
    const std::size_t place = place_of(nodes, node.node_id);
    const NodeKind kind = place == nodes.size() ? NodeKind::kKernel : nodes.kind[place];
    const auto op = op_of_node.find(node.node_id);
    MixPart part{.kind = kind == NodeKind::kOther ? NodeKind::kCopy : kind};
    if (part.kind == NodeKind::kKernel && op != op_of_node.end()) part.op = op->second;
    const auto same = std::find_if(
        mix.begin(), mix.end(), [&](const MixPart& other) { return other.kind == part.kind && other.op == part.op; });
    (same == mix.end() ? mix.emplace_back(part) : *same).share += share;
    owned += share;
  }
  if (owned < 1) mix.push_back({.kind = NodeKind::kOther, .share = 1 - owned});
  return mix;
}

namespace {

constexpr std::size_t kMostSequences = 8;  // the last ones: the first run of a program is slower

// For each beginning of the graph, how long the longest other beginning is that it ends with (Knuth, Morris, Pratt).
std::vector<std::size_t> borders(const std::vector<std::uint32_t>& graph) {
  std::vector<std::size_t> border(graph.size(), 0);
  for (std::size_t i = 1, length = 0; i < graph.size(); ++i) {
    while (length > 0 && graph[i] != graph[length]) length = border[length - 1];
    if (graph[i] == graph[length]) ++length;
    border[i] = length;
  }
  return border;
}

// Where the whole graph was launched kernel by kernel; the places do not overlap.
std::vector<std::size_t> find(const std::vector<std::uint32_t>& graph, const EagerKernels& kernels) {
  const std::vector<std::size_t> border = borders(graph);
  std::vector<std::size_t> found;
  for (std::size_t i = 0, length = 0; i < kernels.size(); ++i) {
    while (length > 0 && kernels.name[i] != graph[length]) length = border[length - 1];
    if (kernels.name[i] == graph[length]) ++length;
    if (length < graph.size()) continue;
    found.push_back(i + 1 - length);
    length = 0;
  }
  return found;
}

EagerTimes by_name(const std::vector<std::uint32_t>& graph, const EagerKernels& kernels) {
  std::unordered_map<std::uint32_t, std::pair<double, double>> sums;  // ns, kernels
  for (std::size_t i = 0; i < kernels.size(); ++i) {
    auto& [ns, count] = sums[kernels.name[i]];
    ns += kernels.duration_ns[i];
    count += 1;
  }
  EagerTimes out;
  for (const std::uint32_t name : graph) {
    const auto sum = sums.find(name);
    out.duration_ns.push_back(sum == sums.end() ? 0 : sum->second.first / sum->second.second);
    out.known += sum == sums.end() ? 0 : 1;
  }
  if (!graph.empty()) out.known /= static_cast<double>(graph.size());
  return out;
}

}  // namespace

EagerTimes eager_times(const std::vector<std::uint32_t>& graph, const EagerKernels& kernels) {
  if (graph.empty()) return {};
  std::vector<std::size_t> places = find(graph, kernels);
  if (places.empty()) return by_name(graph, kernels);
  if (places.size() > kMostSequences) places.erase(places.begin(), places.end() - kMostSequences);
  EagerTimes out{std::vector<double>(graph.size()), static_cast<std::int64_t>(places.size()), 1};
  for (std::size_t node = 0; node < graph.size(); ++node) {
    for (const std::size_t place : places) out.duration_ns[node] += kernels.duration_ns[place + node];
    out.duration_ns[node] /= static_cast<double>(places.size());
  }
  return out;
}

}  // namespace llmprof::analyze
