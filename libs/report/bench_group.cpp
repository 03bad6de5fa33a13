#include "report/bench_group.h"

#include <fmt/format.h>

#include <algorithm>

namespace llmprof::report {
namespace {

using analyze::BenchPoint;

// In the order of columns, with the words that stand above the table where they do not vary.
struct Property {
  const char* title;
  std::string BenchPoint::*value;
  const char* format;
  bool column = true;  // where it varies; a method is too long for one
  bool axes_follow = false;
};
constexpr Property kProperties[] = {
    {"type", &BenchPoint::type, "{}", true, true}, {"name", &BenchPoint::name, "for {}"},
    {"cache", &BenchPoint::cache, "{} cache"},     {"implementation", &BenchPoint::implementation, "{}"},
    {"method", &BenchPoint::method, "{}", false},  {"timer", &BenchPoint::timer, "timed by {}"}};

template <class Value>
bool varies(const std::vector<const BenchPoint*>& points, const Value& value) {
  return std::ranges::any_of(points, [&](const BenchPoint* point) { return value(*point) != value(*points.front()); });
}

void add_axes(BenchGroup& group, std::string& sizes) {
  for (const auto& [axis, first] : group.measured.front()->axes) {
    const BenchColumn column{.title = axis, .axis = true};
    if (varies(group.measured, [&](const BenchPoint& point) { return cell_of(point, column); })) {
      group.columns.push_back(column);
    } else {
      sizes += fmt::format("{}{}={}", sizes.empty() ? "" : " ", axis, first);
    }
  }
}

void add_fixed(BenchGroup& group, const std::string& text) {
  if (!text.empty()) group.fixed += (group.fixed.empty() ? "" : ", ") + text;
}

void describe(BenchGroup& group) {
  for (const Property& property : kProperties) {
    const auto value = [&](const BenchPoint& point) { return point.*property.value; };
    if (varies(group.measured, value)) {
      if (property.column)
        group.columns.push_back(
            {.title = property.title, .axis = false, .text = true, .elastic = property.value == &BenchPoint::name});
    } else if (const std::string& same = value(*group.measured.front()); !same.empty()) {
      add_fixed(group, fmt::format(fmt::runtime(property.format), same));
    }
    if (property.axes_follow) {
      std::string sizes;
      add_axes(group, sizes);
      add_fixed(group, sizes);
    }
  }
}

}  // namespace

std::vector<BenchGroup> groups_of(const std::vector<BenchPoint>& points) {
  std::vector<BenchGroup> groups;
  for (const BenchPoint& point : points) {
    if (!point.measured()) continue;
    auto group = std::ranges::find(groups, point.op, &BenchGroup::op);
    if (group == groups.end()) group = groups.insert(groups.end(), BenchGroup{.op = point.op, .fixed = {}});
    group->measured.push_back(&point);
  }
  for (BenchGroup& group : groups) describe(group);
  return groups;
}

std::string cell_of(const BenchPoint& point, const BenchColumn& column) {
  if (column.axis) {
    for (const auto& [axis, value] : point.axes) {
      if (axis == column.title) return std::to_string(value);
    }
    return "";
  }
  for (const Property& property : kProperties) {
    if (column.title == property.title) return point.*property.value;
  }
  return "";
}

std::string title_of(const BenchPoint& point) {
  std::string text = fmt::format("{} {} {}", point.op, point.type, point.sizes());
  if (point.cache == "hot") text += ", hot";
  if (!point.implementation.empty()) text += ", " + point.implementation;
  return point.name.empty() ? text : fmt::format("{} ({})", text, point.name);
}

}  // namespace llmprof::report
