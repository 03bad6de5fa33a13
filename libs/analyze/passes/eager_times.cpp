#include "analyze/passes/eager_times.h"

#include <algorithm>
#include <unordered_map>

namespace llmprof::analyze {
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
    ns += static_cast<double>(kernels.duration_ns[i]);
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
    for (const std::size_t place : places)
      out.duration_ns[node] += static_cast<double>(kernels.duration_ns[place + node]);
    out.duration_ns[node] /= static_cast<double>(places.size());
  }
  return out;
}

}  // namespace llmprof::analyze
