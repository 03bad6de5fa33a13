#include <cmath>
#include <map>

#include "base/json.h"
#include "pictures/page_data.h"

namespace llmprof::pictures {
namespace {

using base::Json;

// The columns that both kinds of trees have.
class Columns {
 public:
  void add(std::int32_t parent, const std::string& name, const std::string& kind) {
    parents_.push_back(parent);
    names_of_nodes_.push_back(number(name));
    kinds_.push_back(number(kind));
  }
  void put(Json& out) {
    out["names"] = std::move(names_);
    out["parent"] = std::move(parents_);
    out["name"] = std::move(names_of_nodes_);
    out["kind"] = std::move(kinds_);
  }

 private:
  std::size_t number(const std::string& text) {
    const auto [found, is_new] = numbers_.try_emplace(text, names_.size());
    if (is_new) names_.push_back(text);
    return found->second;
  }
  Json names_ = Json::array(), parents_ = Json::array(), names_of_nodes_ = Json::array(), kinds_ = Json::array();
  std::map<std::string, std::size_t> numbers_;
};

// Nanoseconds and bytes are whole.
Json whole(double value) { return static_cast<std::int64_t>(std::llround(value)); }
Json whole(const std::array<double, 3>& values) { return {whole(values[0]), whole(values[1]), whole(values[2])}; }

struct WeightColumns {
  Json columns = {Json::array(), Json::array(), Json::array()};
  void add(const std::array<double, 3>& values) {
    for (std::size_t i = 0; i < values.size(); ++i) columns[i].push_back(whole(values[i]));
  }
};

}  // namespace

Json to_json(const Flame& flame) {
  Columns columns;
  WeightColumns self;
  for (const FlameNode& node : flame.nodes) {
    columns.add(node.parent, node.name, node.kind);
    self.add(node.self);
  }
  Json out = Json::object();
  columns.put(out);
  out["self"] = std::move(self.columns);
  out["total"] = whole(flame.total);
  out["put_together"] = whole(flame.put_together);
  out["why"] = base::text_or_null(flame.why);
  return out;
}

Json to_json(const std::vector<FlameDiffNode>& nodes) {
  Columns columns;
  WeightColumns before, after;
  for (const FlameDiffNode& node : nodes) {
    columns.add(node.parent, node.name, node.kind);
    before.add(node.before);
    after.add(node.after);
  }
  Json out = Json::object();
  columns.put(out);
  out["before"] = std::move(before.columns);
  out["after"] = std::move(after.columns);
  return out;
}

}  // namespace llmprof::pictures
