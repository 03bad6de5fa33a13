#include "importers/chrome_json/work.h"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "base/numbers.h"
#include "base/strings.h"

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

constexpr std::int64_t kMaxDevices = 4096;

trace::OptionalInt32 small(std::int64_t value) {
  if (value < 0 || value > std::numeric_limits<std::int32_t>::max()) return std::nullopt;
  return static_cast<std::int32_t>(value);
}

std::int64_t device_of(const Event& event) {
  if (event.args.device >= 0 && event.args.device < kMaxDevices) return event.args.device;
  return event.pid.number >= 0 && event.pid.number < kMaxDevices ? event.pid.number : 0;
}

template <class Row>
void fill_common(const Event& event, std::int64_t end_ns, Lanes& lanes, trace::Id id, Row& row) {
  row.id = id;
  row.begin_ns = event.ts_ns;
  row.end_ns = end_ns;
  row.device_id = lanes.device(device_of(event));
  if (event.args.stream != kUnknown) {
    row.stream = event.args.stream;
  } else if (event.tid.number != kUnknown) {
    row.stream = event.tid.number;
  }
}

std::string_view host_memory(std::string_view name) {
  const auto has = [&](std::string_view part) { return base::contains(name, part); };
  return has("Pinned") ? "pinned" : has("Pageable") ? "pageable" : has("Managed") ? "managed" : "";
}

Work work_of(const Event& event) {
  return {.row = {},
          .external_id = event.args.external_id,
          .graph_node = event.args.graph_node_id > 0 ? event.args.graph_node_id : kUnknown,
          .graph = event.args.graph_id > 0 ? event.args.graph_id : kUnknown};
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

void Launches::emit(Work& work) {
  if (auto* const kernel = std::get_if<trace::KernelRow>(&work.row)) {
    kernel->op_id = ops_.op_of(work.external_id);
    kernel->gemm_id = ops_.executed(work.external_id, kernel->id, kernel->end_ns - kernel->begin_ns);
    sink_.add(*kernel);
  } else {
    auto& copy = std::get<trace::CopyRow>(work.row);
    copy.op_id = ops_.op_of(work.external_id);
    sink_.add(copy);
  }
}

void Launches::join(Work& work, const Launch& launch, std::int64_t correlation) {
  if (launch.graph && graphs_.add(work, correlation)) return;
  std::visit([&](auto& row) { trace::set_launch(row, &launch); }, work.row);
  emit(work);
}

void Launches::wait(Work work, std::int64_t correlation) {
  std::uint32_t place = 0;
  if (!free_.empty()) {
    place = free_.back();
    free_.pop_back();
    waiting_[place] = {std::move(work), 0};
  } else {
    place = static_cast<std::uint32_t>(waiting_.size());
    waiting_.push_back({std::move(work), 0});
  }
  std::uint32_t& first = *waiting_ids_.insert(correlation, 0);  // there is room: see executed()
  waiting_[place].next = std::exchange(first, place);
}

void Launches::executed(Work work, std::int64_t correlation) {
  ++works_;
  const Launch* const found = calls_.find(correlation);
  if (found != nullptr) {
    const Launch launch = *found;
    if (!launch.graph) calls_.erase(correlation);
    join(work, launch, correlation);
  } else if (correlation == kUnknown || waiting_.size() - free_.size() > kMaxWaitingWork) {
    sink_.lose(trace::Loss::kLaunchLost, 1);
    emit(work);
  } else {
    wait(std::move(work), correlation);
  }
}

void Launches::called(const Launch& launch, std::int64_t correlation) {
  if (launch.graph) graphs_.launched(launch, correlation);
  const std::uint32_t* const found = waiting_ids_.find(correlation);
  if (found != nullptr) {
    for (std::uint32_t place = *found; place != 0;) {
      join(waiting_[place].work, launch, correlation);
      free_.push_back(place);
      place = waiting_[place].next;
    }
    waiting_ids_.erase(correlation);
    if (!launch.graph) return;
  }
  if (calls_.full()) calls_ = IdMap<Launch>(kMaxWaitingCalls);  // those that nobody came for
  Launch* const kept = calls_.insert(correlation, launch);
  // A call of the runtime and the one of the driver in it share their number: the outer is the launch.
  if (kept != nullptr && launch.begin_ns <= kept->begin_ns && launch.end_ns >= kept->end_ns) *kept = launch;
}

void Launches::finish() {
  waiting_ids_.each([&](std::int64_t, std::uint32_t first) {
    for (std::uint32_t place = first; place != 0; place = waiting_[place].next) {
      sink_.lose(trace::Loss::kLaunchLost, 1);
      emit(waiting_[place].work);
    }
  });
  waiting_ids_ = IdMap<std::uint32_t>(kMaxWaitingWork);
  graphs_.finish();
}

std::string_view copy_direction(std::string_view name) {
  const auto has = [&](std::string_view part) { return base::contains(name, part); };
  if (has("Memset") || has("memset")) return "fill";
  if (has("HtoD") || has("H2D")) return "host_to_device";
  if (has("DtoH") || has("D2H")) return "device_to_host";
  if (has("DtoD") || has("D2D")) return "device_to_device";
  if (has("PtoP") || has("P2P") || has("Peer")) return "peer";
  return has("HtoH") || has("H2H") ? "host_to_host" : "";
}

std::int64_t integer_in(std::string_view text, std::string_view key) {
  const std::size_t found = text.find(key);
  if (found == std::string_view::npos) return kUnknown;
  const std::size_t digit = text.find_first_not_of("\": ", found + key.size());
  if (digit == std::string_view::npos) return kUnknown;
  return base::leading_number<std::int64_t>(text.substr(digit)).value_or(kUnknown);
}

Work kernel_of(const Event& event, std::int64_t end_ns, Lanes& lanes, Names& names, trace::Id id) {
  trace::KernelRow row;
  fill_common(event, end_ns, lanes, id, row);
  row.name = names(event.name);
  row.grid_x = small(event.args.grid[0]), row.grid_y = small(event.args.grid[1]),
  row.grid_z = small(event.args.grid[2]);
  row.block_x = small(event.args.block[0]), row.block_y = small(event.args.block[1]);
  row.block_z = small(event.args.block[2]);
  row.registers = small(event.args.registers);
  row.shared_bytes = small(event.args.shared_bytes);
  Work work = work_of(event);
  work.row = row;
  return work;
}

Work copy_of(const Event& event, std::int64_t end_ns, Lanes& lanes, Names& names, trace::Id id) {
  trace::CopyRow row;
  fill_common(event, end_ns, lanes, id, row);
  row.direction = names(copy_direction(event.name));
  row.host_memory = names(host_memory(event.name));
  row.bytes = event.args.bytes > 0 ? event.args.bytes : 0;
  Work work = work_of(event);
  work.row = row;
  return work;
}

void take_xla_details(std::string_view raw, Work& work) {
  if (auto* const copy = std::get_if<trace::CopyRow>(&work.row)) {
    const std::int64_t bytes = integer_in(raw, "size:");
    if (bytes > 0) copy->bytes = bytes;
    return;
  }
  auto& kernel = std::get<trace::KernelRow>(work.row);
  const auto triple = [&](std::string_view key) {
    std::array<trace::OptionalInt32, 3> sides;
    std::size_t at = raw.find(key);
    for (std::size_t i = 0; i < sides.size() && at != std::string_view::npos; ++i) {
      at = raw.find_first_of(i == 0 ? ":" : ",", at);
      if (at == std::string_view::npos) break;
      sides[i] = small(integer_in(raw.substr(at++), i == 0 ? ":" : ","));
    }
    return sides;
  };
  const auto grid = triple(" grid:"), block = triple(" block:");
  kernel.grid_x = grid[0], kernel.grid_y = grid[1], kernel.grid_z = grid[2];
  kernel.block_x = block[0], kernel.block_y = block[1], kernel.block_z = block[2];
  kernel.registers = small(integer_in(raw, "regs:"));
  const std::int64_t fixed = integer_in(raw, "static_shared:"), dynamic = integer_in(raw, "dynamic_shared:");
  if (fixed >= 0 && dynamic >= 0 && fixed < INT32_MAX && dynamic < INT32_MAX)
    kernel.shared_bytes = small(fixed + dynamic);
}

}  // namespace llmprof::importers::chrome_json
