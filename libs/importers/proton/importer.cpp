// Profiles of Triton's Proton (hatchet JSON): an array of a tree of scopes with kernels as leaves, and of the devices.
#include "importers/importer.h"
#include "base/strings.h"

#include <fmt/format.h>

#include <cmath>
#include <set>

#include "base/json.h"
#include "base/text_table.h"
#include "importers/input.h"
#include "importers/sink.h"

namespace llmprof::importers {
namespace proton {
namespace {

using base::Json;

constexpr std::uint64_t kMaxBytes = 32 << 20;
constexpr std::string_view kHint = "write it with triton.profiler (output format tree, the default) and its finalize()";

int sniff(std::string_view head) {
  const std::size_t first = head.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos || head[first] != '[') return 0;
  const bool tree = base::contains(head, "\"children\"") && base::contains(head, "\"frame\"");
  return tree || (base::contains(head, "\"frame\"") && base::contains(head, "\"metrics\"")) ? 85 : 0;
}

const Json* member(const Json& object, const char* name) {
  const auto found = object.is_object() ? object.find(name) : object.end();
  return found == object.end() ? nullptr : &*found;
}

std::optional<double> number(const Json& object, const char* name) {
  const Json* value = member(object, name);
  if (value == nullptr || !value->is_number()) return std::nullopt;
  const double result = value->get<double>();
  return std::isfinite(result) && std::fabs(result) < 9e18 ? std::optional(result) : std::nullopt;
}

class Reader {
 public:
  explicit Reader(Sink& sink) : sink_(sink) {}

  Result<void> read(const Json& root) {
    if (!root.is_array() || root.empty()) return refuse();
    for (const Json& part : root) {
      if (member(part, "frame") != nullptr || member(part, "children") != nullptr) {
        add_tree(part);
      } else {
        add_devices(part);
      }
    }
    if (nodes_.empty()) return refuse();
    sum_up();
    sink_.set_facts({.tool = "Triton Proton"});
    return {};
  }

 private:
  struct Node {
    trace::SummaryRow row;
    std::ptrdiff_t parent = -1;
    bool kernel = false;
  };

  static Error refuse() {
    return {ErrorCode::kCorruptInput, "byte 0: is JSON, but not a tree of scopes with frames and metrics",
            std::string(kHint)};
  }

  // Without recursion: the depth is the file's.
  void add_tree(const Json& root) {
    std::vector<std::pair<const Json*, std::ptrdiff_t>> open{{&root, -1}};
    while (!open.empty()) {
      const auto [node, parent] = open.back();
      open.pop_back();
      const Json* frame = member(*node, "frame");
      const Json* name = frame == nullptr ? nullptr : member(*frame, "name");
      if (name == nullptr || !name->is_string()) {
        sink_.lose(trace::Loss::kInputDamaged, 1, "nodes of the tree without a name");
        continue;
      }
      nodes_.push_back({{}, parent, false});
      const auto place = static_cast<std::ptrdiff_t>(nodes_.size()) - 1;
      Node& added = nodes_.back();
      added.row.id = sink_.new_id();
      added.row.name = sink_.name(name->get_ref<const std::string&>());
      if (const Json* metrics = member(*node, "metrics")) add_metrics(*metrics, added);
      const Json* children = member(*node, "children");
      if (children == nullptr || !children->is_array()) continue;
      for (auto child = children->rbegin(); child != children->rend(); ++child) open.emplace_back(&*child, place);
    }
  }

  void add_metrics(const Json& metrics, Node& node) {
    node.kernel = member(metrics, "device_id") != nullptr;
    if (const auto count = number(metrics, "count"); count && node.kernel) node.row.calls = std::llround(*count);
    if (const auto ns = number(metrics, "time (ns)"); ns && node.kernel) node.row.self_device_ns = *ns;
    if (const auto bytes = number(metrics, "bytes"); bytes && *bytes > 0) node.row.moved_bytes = *bytes;
    for (const char* flops : {"flops", "flops8", "flops16", "flops32", "flops64"}) {
      if (const auto value = number(metrics, flops); value && *value > 0)
        node.row.flops = node.row.flops.value_or(0) + *value;
    }
    if (!metrics.is_object()) return;
    static const std::set<std::string_view> kKnown{"count",   "time (ns)", "bytes",   "flops",     "flops8",
                                                   "flops16", "flops32",   "flops64", "device_id", "device_type"};
    for (const auto& [key, value] : metrics.items()) {
      if (!kKnown.contains(key))
        sink_.lose(trace::Loss::kInputIgnored, 1, "values of metrics that totals have no column for",
                   base::printable(std::string_view(key).substr(0, 60)));
    }
  }

  // A scope's time is that of the kernels below it. Children stand behind their parents.
  void sum_up() {
    for (auto node = nodes_.rbegin(); node != nodes_.rend(); ++node) {
      trace::SummaryRow& row = node->row;
      if (node->kernel) row.device_ns = row.self_device_ns;
      if (node->parent < 0) continue;
      trace::SummaryRow& parent = nodes_[static_cast<std::size_t>(node->parent)].row;
      row.parent_id = parent.id;
      if (row.device_ns) parent.device_ns = parent.device_ns.value_or(0) + *row.device_ns;
    }
    for (Node& node : nodes_) {
      node.row.kind = sink_.name(node.kernel ? "kernel" : "range");
      sink_.add(node.row);
    }
  }

  // {"CUDA": {"0": {"arch": "90", "num_sms": 132, "clock_rate": 1980000, …}}}
  void add_devices(const Json& kinds) {
    if (!kinds.is_object()) return;
    for (const auto& [kind, devices] : kinds.items()) {
      if (!devices.is_object()) continue;
      for (const auto& [ordinal, facts] : devices.items()) {
        trace::DeviceRow row{.id = sink_.new_id(), .kind = sink_.name("gpu")};
        row.name = sink_.name(fmt::format("{} GPU {}", base::printable(std::string_view(kind).substr(0, 32)),
                                          base::printable(std::string_view(ordinal).substr(0, 32))));
        if (const Json* arch = member(facts, "arch"); arch != nullptr && arch->is_string())
          row.chip = sink_.name("architecture " + arch->get_ref<const std::string&>().substr(0, 32));
        row.units = std::llround(number(facts, "num_sms").value_or(0));
        if (const auto khz = number(facts, "clock_rate")) row.clock_mhz = *khz / 1e3;
        sink_.add(row);
      }
    }
  }

  Sink& sink_;
  std::vector<Node> nodes_;
};

Result<void> parse(Input& input, Sink& sink) {
  LLMPROF_LET(const std::string text, input.read_all(kMaxBytes));
  Result<Json> root = base::parse_json(text, "");
  if (!root) {
    Error error = root.error();
    error.message.erase(0, error.message.find_first_not_of(": "));
    if (!error.message.starts_with("byte")) error.message.insert(0, "byte 0: ");
    error.hint = kHint;
    return error;
  }
  return Reader(sink).read(*root);
}

}  // namespace
}  // namespace proton

extern const Importer kProton;
const Importer kProton{"proton", "Triton Proton, hatchet JSON", Role::kSummary, proton::sniff, proton::parse, false};

}  // namespace llmprof::importers
