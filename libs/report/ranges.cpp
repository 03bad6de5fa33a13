#include "report/ranges.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/json.h"
#include "base/text_table.h"

namespace llmprof::report {
namespace {

using analyze::NameMeaning;
using analyze::RangeNode;
using base::Align;
using base::Json;
using base::TextTable;

// The `top` nodes with most time, GPU time first; the nodes around them are among them, as they have no less.
std::vector<bool> chosen(const std::vector<RangeNode>& tree, std::size_t top) {
  std::vector<std::size_t> order(tree.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) {
    return std::pair(tree[a].kernel_ns, tree[a].total_ns) > std::pair(tree[b].kernel_ns, tree[b].total_ns);
  });
  std::vector<bool> out(tree.size());
  for (std::size_t i = 0; i < std::min(top, order.size()); ++i) out[order[i]] = true;
  return out;
}

std::string understood(std::string_view kind, std::string_view stage) {
  if (kind == "step") return fmt::format("step of {}", stage);
  if (kind == "stage") return fmt::format("container of {}", stage.empty() ? "steps" : stage);
  if (kind == "module") return stage.empty() ? "part" : fmt::format("part, in {}", stage);
  return stage.empty() ? "-" : fmt::format("-, in {}", stage);
}

}  // namespace

std::string range_tree_table(const std::vector<RangeNode>& tree, std::size_t top) {
  const bool gpu = std::ranges::any_of(tree, [](const RangeNode& node) { return node.kernel_ns > 0; });
  std::vector<TextTable::Column> columns{{"range", Align::kLeft, true}, {"ranges"}, {"host"}, {"host, self"}};
  if (gpu) columns.push_back({"kernels"});
  columns.push_back({"understood as", Align::kLeft});
  TextTable table(columns);
  const std::vector<bool> show = chosen(tree, top);
  for (std::size_t i = 0; i < tree.size(); ++i) {
    if (!show[i]) continue;
    const RangeNode& node = tree[i];
    std::vector<std::string> cells{
        std::string(2 * static_cast<std::size_t>(node.depth), ' ') + base::printable(node.name),
        std::to_string(node.ranges), time_cell(node.total_ns), time_cell(node.self_ns)};
    if (gpu) cells.push_back(time_cell(node.kernel_ns));
    cells.push_back(base::printable(understood(node.kind, node.stage)));
    table.add(std::move(cells));
  }
  std::string out = table.render();
  if (tree.size() > top) {
    out += fmt::format("  {} that took less; --top shows more.\n",
                       counted(static_cast<std::int64_t>(tree.size() - top), "place"));
  }
  return out;
}

std::string meaning_table(const std::vector<NameMeaning>& meanings, std::size_t top) {
  TextTable table(
      {{"name", Align::kLeft}, {"ranges"}, {"time"}, {"understood as", Align::kLeft}, {"why", Align::kLeft, true}});
  for (std::size_t i = 0; i < std::min(top, meanings.size()); ++i) {
    const NameMeaning& meaning = meanings[i];
    table.add({base::shorten(base::printable(meaning.name), 40), std::to_string(meaning.ranges),
               time_cell(meaning.total_ns), base::printable(understood(meaning.kind, meaning.stage)),
               base::printable(meaning.why.empty() ? "no word of it is known" : meaning.why)});
  }
  std::string out = table.render();
  if (meanings.size() > top) {
    out += fmt::format("  {} more; --top shows more.\n",
                       counted(static_cast<std::int64_t>(meanings.size() - top), "name"));
  }
  return out;
}

std::string range_section(const Page& page, const Style& style) {
  if (page.summary.range_tree.empty()) return "";
  return style.heading("Ranges") +
         wrapped(
             "The program's own ranges, each below the one around it; numbers in names are '#'. host: from begin to "
             "end, "
             "added up; self: outside of the ranges inside. kernels: launched in them, what is inside included.") +
         range_tree_table(page.summary.range_tree, page.top);
}

Json range_tree_json(const std::vector<RangeNode>& tree) {
  Json out = Json::array();
  for (const RangeNode& node : tree) {
    out.push_back({{"name", node.name},
                   {"depth", node.depth},
                   {"kind", node.kind.empty() ? Json(nullptr) : Json(node.kind)},
                   {"stage", node.stage.empty() ? Json(nullptr) : Json(node.stage)},
                   {"ranges", node.ranges},
                   {"total_ns", node.total_ns},
                   {"self_ns", node.self_ns},
                   {"kernel_ns", node.kernel_ns}});
  }
  return out;
}

Json meanings_json(const std::vector<NameMeaning>& meanings) {
  Json out = Json::array();
  const auto text = [](const std::string& value) { return value.empty() ? Json(nullptr) : Json(value); };
  for (const NameMeaning& meaning : meanings) {
    out.push_back({{"name", meaning.name},
                   {"domain", text(meaning.domain)},
                   {"kind", text(meaning.kind)},
                   {"stage", text(meaning.stage)},
                   {"why", text(meaning.why)},
                   {"ranges", meaning.ranges},
                   {"total_ns", meaning.total_ns}});
  }
  return out;
}

}  // namespace llmprof::report
