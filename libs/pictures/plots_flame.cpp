#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/human.h"
#include "pictures/plots_drawn.h"
#include "report/svg.h"

namespace llmprof::pictures {
namespace {

using report::svg_escaped;
using report::svg_fitting;
using report::svg_text;

constexpr double kRow = 18, kLeft = 16, kThinnest = 1.5;
constexpr std::size_t kMostLevels = 64;

// Each kind has its colour; what is put together is grey.
constexpr std::array<std::string_view, 8> kKinds{"stage",  "python", "native", "range",
                                                 "module", "kernel", "copy",   "other"};
std::size_t colour_of(const FlameNode& node) {
  const auto found = std::find(kKinds.begin(), kKinds.end(), node.kind);
  return found == kKinds.end() ? kKinds.size() - 1 : static_cast<std::size_t>(found - kKinds.begin());
}

struct Box {
  std::size_t node = 0, depth = 0;
  double begin = 0, weight = 0;  // in the unit of the weight
};

class Layout {
 public:
  Layout(const Flame& flame, std::size_t weight) : totals_(flame.nodes.size()) {
    for (std::size_t i = 0; i < totals_.size(); ++i) totals_[i] = flame.nodes[i].self[weight];
    children_.resize(totals_.size());
    for (std::size_t i = totals_.size(); i-- > 0;) {  // parents come first
      const std::int32_t parent = flame.nodes[i].parent;
      if (parent < 0) continue;
      totals_[static_cast<std::size_t>(parent)] += totals_[i];
      children_[static_cast<std::size_t>(parent)].push_back(i);
    }
    for (std::vector<std::size_t>& nodes : children_) {
      std::stable_sort(nodes.begin(), nodes.end(), [&](auto a, auto b) { return totals_[a] > totals_[b]; });
    }
  }

  double total(std::size_t node) const { return totals_[node]; }

  // Boxes of a subtree, those of less than `thinnest` left out with all above them.
  std::vector<Box> boxes(std::size_t root, double thinnest) const {
    std::vector<Box> out{{root, 0, 0, totals_[root]}};
    for (std::size_t i = 0; i < out.size(); ++i) {
      if (out[i].depth + 1 >= kMostLevels) continue;
      double begin = out[i].begin;
      for (const std::size_t child : children_[out[i].node]) {
        if (totals_[child] >= thinnest && totals_[child] > 0)
          out.push_back({child, out[i].depth + 1, begin, totals_[child]});
        begin += totals_[child];
      }
    }
    return out;
  }

 private:
  std::vector<double> totals_;
  std::vector<std::vector<std::size_t>> children_;
};

std::size_t root_of(const Flame& flame, const std::string& stage) {
  for (std::size_t i = 0; i < flame.nodes.size() && !stage.empty(); ++i) {
    if (flame.nodes[i].kind == "stage" && flame.nodes[i].name == stage) return i;
  }
  return 0;
}

std::string weight_text(std::size_t weight, double value) {
  return weight == 2 ? base::human_bytes(value) : base::human_ns(value);
}

std::string box_svg(const FlameNode& node, double x, double y, double width, const std::string& tip) {
  std::string out = fmt::format(
      "<g><title>{}</title><rect class=\"f{}\" fill-opacity=\"{}\" x=\"{:.2f}\" y=\"{:.1f}\" width=\"{:.2f}\" "
      "height=\"{}\"/>",
      svg_escaped(tip), colour_of(node), width < 20 ? "0.8" : "0.5", x, y, std::max(width - 0.5, 0.3), kRow - 1);
  if (const std::string text = svg_fitting(node.name, width - 11); !text.empty())
    out += svg_text(x + 4, y + 13, text, report::Anchor::kStart, "small");
  return out + "</g>\n";
}

// Of the kinds that are drawn: a legend in their order.
std::string legend(const Flame& flame, const std::vector<Box>& boxes, double y) {
  std::array<bool, kKinds.size()> used{};
  for (const Box& box : boxes) used[colour_of(flame.nodes[box.node])] = true;
  std::string out;
  double x = kLeft;
  for (std::size_t i = 0; i < kKinds.size(); ++i) {
    if (!used[i]) continue;
    out +=
        fmt::format("<rect class=\"f{}\" fill-opacity=\"0.7\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"13\" height=\"10\"/>\n",
                    i, x, y - 9);
    out += svg_text(x + 19, y, kKinds[i]);
    x += 19 + report::svg_text_width(kKinds[i]) + 16;
  }
  return out;
}

}  // namespace

std::string flame_svg(const Flame& flame, std::size_t weight, const std::string& stage, const PictureFrame& frame) {
  const int width = std::clamp(frame.width, 240, 10'000);
  const double inner = width - 2 * kLeft;
  const report::SvgHead head = report::svg_head(frame.title, frame.note, {}, {}, width);
  if (flame.nodes.empty()) {
    return report::svg_begin(width, static_cast<int>(head.bottom + 40), frame.title, frame.theme) + head.text +
           svg_text(kLeft, head.bottom + 24, "Nothing to draw.") + std::string(report::kSvgEnd);
  }
  const Layout layout(flame, weight);
  const std::size_t root = root_of(flame, stage);
  const double whole = layout.total(root);
  const std::vector<Box> boxes = layout.boxes(root, whole * kThinnest / inner);
  std::size_t deepest = 0;
  for (const Box& box : boxes) deepest = std::max(deepest, box.depth);
  const double top = head.bottom + 36, bottom = top + kRow * static_cast<double>(deepest + 1);
  std::string out = report::svg_begin(width, static_cast<int>(bottom + 16), frame.title, frame.theme) + head.text +
                    legend(flame, boxes, head.bottom + 22);
  for (const Box& box : boxes) {
    if (!(whole > 0)) break;
    const FlameNode& node = flame.nodes[box.node];
    const std::string tip = fmt::format("{}: {}, {} of {}", node.name, weight_text(weight, box.weight),
                                        base::human_percent(box.weight / whole), weight_text(weight, whole));
    out += box_svg(node, kLeft + box.begin / whole * inner, bottom - kRow * static_cast<double>(box.depth + 1),
                   box.weight / whole * inner, tip);
  }
  return out + std::string(report::kSvgEnd);
}

}  // namespace llmprof::pictures
