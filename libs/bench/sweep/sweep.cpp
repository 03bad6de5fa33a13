#include "bench/sweep/sweep.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "base/suggest.h"

namespace llmprof::bench {

namespace {

using AxisValues = std::vector<std::pair<std::string, std::int64_t>>;

Error usage(std::string message, std::string hint = "") {
  return {ErrorCode::kUsage, std::move(message), std::move(hint)};
}

const AxisSpec* find_axis(const Operator& op, std::string_view name) {
  for (const AxisSpec& axis : op.axes) {
    if (axis.name == name) return &axis;
  }
  return nullptr;
}

// "gemm has m, n and k; rmsnorm has …", for the first few.
std::string axes_of(const std::vector<const Operator*>& operators) {
  std::string text;
  for (std::size_t i = 0; i < std::min<std::size_t>(operators.size(), 3); ++i) {
    std::string names;
    for (const AxisSpec& axis : operators[i]->axes) names += fmt::format("{}{}", names.empty() ? "" : ", ", axis.name);
    text += fmt::format("{}{} has {}", text.empty() ? "" : "; ", operators[i]->name, names);
  }
  return text;
}

Result<void> check_axes(const std::vector<const Operator*>& operators, const std::vector<base::Axis>& axes) {
  for (const base::Axis& axis : axes) {
    bool known = false;
    for (const Operator* op : operators) {
      const AxisSpec* spec = find_axis(*op, axis.name);
      if (spec == nullptr) continue;
      known = true;
      const std::int64_t least = std::ranges::min(axis.values);
      if (least < spec->least) {
        return usage(fmt::format("{}: {} = {} is less than {}", op->name, axis.name, least, spec->least));
      }
    }
    if (!known) return usage(fmt::format("no operator of this sweep has an axis {}", axis.name), axes_of(operators));
  }
  return {};
}

// The values of one operator's axes, in its order.
Result<std::vector<base::Axis>> axes_for(const Operator& op, const std::vector<base::Axis>& given) {
  std::vector<base::Axis> axes;
  for (const AxisSpec& spec : op.axes) {
    base::Axis axis{.name = std::string(spec.name), .values = {}};
    const auto found = std::ranges::find(given, spec.name, &base::Axis::name);
    if (found != given.end()) {
      axis.values = found->values;
    } else {
      LLMPROF_LET(axis.values, base::parse_axis_values(spec.fallback));
    }
    axes.push_back(std::move(axis));
  }
  return axes;
}

Error too_many(double points) {
  return usage(fmt::format("the sweep has {:.0f} points, more than {}", points, kMostPoints),
               "give fewer values, or sweep one axis at a time");
}

double combinations(const std::vector<base::Axis>& axes) {
  double count = 1;
  for (const base::Axis& axis : axes) count *= static_cast<double>(axis.values.size());
  return count;
}

// Counts like an odometer: the last axis turns fastest.
void add_combinations(const Operator& op, Type type, const std::vector<base::Axis>& axes, std::vector<Point>& points) {
  std::vector<std::size_t> at(axes.size(), 0);
  for (;;) {
    AxisValues values;
    for (std::size_t i = 0; i < axes.size(); ++i) values.emplace_back(axes[i].name, axes[i].values[at[i]]);
    points.push_back(make_point(op, type, values));
    std::size_t turned = axes.size();
    while (turned > 0 && ++at[turned - 1] == axes[turned - 1].values.size()) at[--turned] = 0;
    if (turned == 0) return;
  }
}

// What is impossible for every point of an operator was not meant.
Result<void> check_possible(const std::vector<Point>& points, std::size_t begin) {
  if (begin == points.size()) return {};
  const auto first = points.begin() + static_cast<std::ptrdiff_t>(begin);
  if (std::any_of(first, points.end(), [](const Point& point) { return point.impossible.empty(); })) return {};
  return usage(first->impossible, "");
}

bool has_implementation(const Operator& op, std::string_view name) {
  return std::ranges::any_of(op.cuda, [&](const CudaImplementation& way) { return way.name == name; });
}

// The implementations to measure an operator with; "" is its own choice.
std::vector<std::string> implementations_of(const Operator& op, const Variants& variants, DeviceKind device) {
  if (variants.implementation != "all" || device == DeviceKind::kCpu)
    return {variants.implementation == "all" ? "" : variants.implementation};
  std::vector<std::string> names;
  for (const CudaImplementation& way : op.cuda) names.emplace_back(way.name);
  if (names.empty()) names.emplace_back();
  return names;
}

// Appends to "k_proj, v_proj" what is not among them.
void join_name(std::string& names, const std::string& name) {
  if (name.empty() || (", " + names + ",").find(", " + name + ",") != std::string::npos) return;
  names += (names.empty() ? "" : ", ") + name;
}

Result<void> check_implementation(const std::vector<Point>& points, const Variants& variants, DeviceKind device) {
  const std::string& wanted = variants.implementation;
  if (wanted.empty() || wanted == "all") return {};
  if (device == DeviceKind::kCpu)
    return usage(fmt::format("--impl {}: a CPU has one implementation of each operator", wanted));
  std::string known;
  for (const Point& point : points) {
    const Operator* op = find_operator(point.problem.op);
    if (op == nullptr) continue;
    if (has_implementation(*op, wanted)) return {};
    for (const CudaImplementation& way : op->cuda) {
      if (known.find(way.name) == std::string::npos) known += fmt::format("{}{}", known.empty() ? "" : ", ", way.name);
    }
  }
  return usage(fmt::format("no operator of this sweep has an implementation {}", wanted),
               known.empty() ? "" : "there are " + known);
}

}  // namespace

std::string_view cache_name(Cache cache) { return cache == Cache::kCold ? "cold" : "hot"; }

std::optional<Cache> parse_cache(std::string_view name) {
  if (name == "cold") return Cache::kCold;
  if (name == "hot") return Cache::kHot;
  return std::nullopt;
}

std::string Point::key() const { return fmt::format("{} {} {}", problem.key(), cache_name(cache), implementation); }

DeviceKind kind_of_device(const std::string& device) {
  if (device == "cpu") return DeviceKind::kCpu;
  if (!device.empty()) return DeviceKind::kGpu;
  const auto count = cuda::Context::device_count();
  return count && *count > 0 ? DeviceKind::kGpu : DeviceKind::kCpu;
}

Result<std::vector<const Operator*>> chosen_operators(const std::vector<std::string>& names) {
  std::vector<const Operator*> chosen;
  const auto add = [&](const Operator* op) {
    if (std::ranges::find(chosen, op) == chosen.end()) chosen.push_back(op);
  };
  for (const std::string& name : names) {
    if (name == "all") {
      for (const Operator* op : operators()) add(op);
      continue;
    }
    const Operator* op = find_operator(name);
    if (op == nullptr) {
      std::vector<std::string_view> known;
      for (const Operator* other : operators()) known.push_back(other->name);
      return usage(fmt::format("there is no operator '{}'", name),
                   base::did_you_mean(name, known) + "llmprof bench --list shows them all");
    }
    add(op);
  }
  if (chosen.empty()) return usage("no operator to measure", "llmprof bench gemm, or llmprof bench --list");
  return chosen;
}

Type default_type(const Operator& op, DeviceKind device) {
  if (device == DeviceKind::kGpu) return op.types.empty() ? Type::kFloat32 : op.types.front();
  const auto knows = [&](Type type) { return std::ranges::find(op.cpu_types, type) != op.cpu_types.end(); };
  return op.cpu_types.empty() || knows(Type::kFloat32) ? Type::kFloat32 : op.cpu_types.front();
}

bool knows_type(const Operator& op, Type type) {
  return std::ranges::find(op.types, type) != op.types.end() ||
         std::ranges::find(op.cpu_types, type) != op.cpu_types.end() ||
         (op.cpu != nullptr && op.cpu_types.empty() && type == Type::kFloat32);
}

Point make_point(const Operator& op, Type type, const AxisValues& axes) {
  Point point;
  Result<Problem> problem = make_problem(op, type, axes);
  if (problem) {
    point.problem = std::move(*problem);
    if (!knows_type(op, type)) point.impossible = fmt::format("{} knows no {}", op.name, type_name(type));
    return point;
  }
  point.problem = {.op = std::string(op.name), .type = type, .axes = axes};
  point.impossible = problem.error().message;
  return point;
}

Result<std::vector<Point>> with_variants(const std::vector<Point>& points, const Variants& variants,
                                         DeviceKind device) {
  LLMPROF_TRY(check_implementation(points, variants, device));
  std::vector<Point> all;
  std::unordered_map<std::string, std::size_t> place_of;
  for (const Point& point : points) {
    const Operator* op = find_operator(point.problem.op);
    if (op == nullptr) continue;
    for (const std::string& implementation : implementations_of(*op, variants, device)) {
      for (const Cache cache : variants.caches) {
        Point variant = point;
        variant.cache = cache;
        variant.implementation = implementation;
        const auto [found, is_new] = place_of.try_emplace(variant.key(), all.size());
        if (is_new) {
          all.push_back(std::move(variant));
        } else {
          join_name(all[found->second].name, point.name);
        }
      }
    }
    if (all.size() > kMostPoints) return too_many(static_cast<double>(all.size()));
  }
  return all;
}

Result<std::vector<Point>> plan_sweep(const SweepRequest& request) {
  LLMPROF_LET(const std::vector<const Operator*> operators, chosen_operators(request.operators));
  LLMPROF_TRY(check_axes(operators, request.axes));
  std::vector<std::vector<base::Axis>> axes;
  double count = 0;
  for (const Operator* op : operators) {
    LLMPROF_LET(std::vector<base::Axis> own, axes_for(*op, request.axes));
    count += combinations(own) * static_cast<double>(std::max<std::size_t>(request.types.size(), 1));
    axes.push_back(std::move(own));
  }
  if (count > static_cast<double>(kMostPoints)) return too_many(count);
  std::vector<Point> points;
  for (std::size_t i = 0; i < operators.size(); ++i) {
    const std::size_t begin = points.size();
    const std::vector<Type> own = {default_type(*operators[i], request.device)};
    for (const Type type : request.types.empty() ? own : request.types) {
      add_combinations(*operators[i], type, axes[i], points);
    }
    if (operators.size() == 1) LLMPROF_TRY(check_possible(points, begin));
  }
  return with_variants(points, request.variants, request.device);
}

}  // namespace llmprof::bench
