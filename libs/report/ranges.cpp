#include "report/ranges.h"

#include <fmt/format.h>

#include <algorithm>

#include "report/table.h"

namespace llmprof::report {
namespace {

using analyze::NameMeaning;
using analyze::RangeNode;
using base::Json;

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

}  // namespace

std::string range_tree_table(const std::vector<RangeNode>& tree, std::size_t top) {
  const bool gpu = std::ranges::any_of(tree, [](const RangeNode& node) { return node.kernel_ns > 0; });
  const std::vector<bool> show = chosen(tree, top);
  Json rows = Json::array();
  for (std::size_t i = 0; i < tree.size(); ++i) {
    if (show[i]) rows.push_back(base::fields_json(tree[i]));
  }
  const Json nothing;
  std::string out = TableText(nothing, gpu ? Flags{"range_kernels"} : Flags{}, SIZE_MAX).rows("ranges[]", rows);
  if (tree.size() > top) {
    out += fmt::format("  {} that took less; --top shows more.\n",
                       counted(static_cast<std::int64_t>(tree.size() - top), "place"));
  }
  return out;
}

std::string meaning_table(const std::vector<NameMeaning>& meanings, std::size_t top) {
  Json rows = base::fields_json(meanings);
  for (Json& row : rows) {
    if (row["why"].is_null()) row["why"] = "no word of it is known";
  }
  const Json nothing;
  return TableText(nothing, {}, top).rows("names[]", rows);
}

std::string range_section(const Page& page, const Style& style) {
  if (page.summary.range_tree.empty()) return "";
  return style.heading("Ranges") +
         wrapped(
             "The program's own ranges, each below the one around it; numbers in names are '#'. host: from begin to "
             "end, added up; self: outside of the ranges inside. kernels: launched in them, what is inside included.") +
         range_tree_table(page.summary.range_tree, page.top);
}

Json range_tree_json(const std::vector<RangeNode>& tree) { return described_fields("ranges[]", tree); }
Json meanings_json(const std::vector<NameMeaning>& meanings) { return described_fields("names[]", meanings); }

}  // namespace llmprof::report
