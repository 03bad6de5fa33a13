// From the options of `llmprof bench` to the points of a sweep.

#include <fmt/format.h>

#include <algorithm>
#include <cfloat>
#include <deque>

#include "base/strings.h"
#include "bench/sweep/presets.h"
#include "bench_verb.h"
#include "model/checkpoint/open_model.h"
#include "record/open_run.h"
#include "report_verb.h"

namespace llmprof::app {
namespace {

constexpr std::string_view kPassAxes[] = {"batch", "seq", "context"};  // what --like takes

Error usage(std::string message, std::string hint = "") {
  return {ErrorCode::kUsage, std::move(message), std::move(hint)};
}

// The axis with its operators: "sequences, of attention_decode, conv2d and 12 more".
struct AxisRow {
  std::string name, meaning;
  std::vector<std::string_view> operators;
};

std::vector<AxisRow> axis_rows() {
  std::vector<AxisRow> rows;
  for (const bench::Operator* op : bench::operators()) {
    for (const bench::AxisSpec& axis : op->axes) {
      auto row = std::ranges::find(rows, axis.name, &AxisRow::name);
      if (row == rows.end()) row = rows.insert(rows.end(), {std::string(axis.name), std::string(axis.meaning), {}});
      row->operators.push_back(op->name);
    }
  }
  for (const std::string_view name : kPassAxes) {
    if (std::ranges::find(rows, name, &AxisRow::name) == rows.end())
      rows.push_back({std::string(name), "with --like", {}});
  }
  return rows;
}

std::string help_of(const AxisRow& row) {
  constexpr std::size_t kShown = 3;
  std::string names;
  for (std::size_t i = 0; i < std::min(row.operators.size(), kShown); ++i) {
    names += fmt::format("{}{}", i == 0 ? "" : ", ", row.operators[i]);
  }
  if (row.operators.size() > kShown) names += fmt::format(" and {} more", row.operators.size() - kShown);
  return fmt::format("Axis: {}{}{}", row.meaning, names.empty() ? "" : "; of ", names);
}

Result<std::vector<base::Axis>> given_axes(const Arguments& arguments) {
  std::vector<base::Axis> axes;
  for (const AxisRow& row : axis_rows()) {
    const std::string flag = axis_flag(row.name);
    if (!arguments.given(flag)) continue;
    auto values = base::parse_axis_values(arguments.get(flag));
    if (!values) return usage(fmt::format("{}: {}", flag, values.error().message), values.error().hint);
    axes.push_back({row.name, std::move(*values)});
  }
  return axes;
}

Result<bench::Variants> given_variants(const Arguments& arguments) {
  bench::Variants variants;
  variants.implementation = arguments.get("--impl");
  const std::string cache = arguments.get("--cache");
  if (cache == "both") {
    variants.caches = {bench::Cache::kCold, bench::Cache::kHot};
  } else if (const auto one = bench::parse_cache(cache)) {
    variants.caches = {*one};
  } else {
    return usage(fmt::format("--cache: '{}' is not cold, hot or both", cache));
  }
  return variants;
}

Result<std::int64_t> count_of(const Arguments& arguments, std::string_view flag, std::int64_t least,
                              std::int64_t most) {
  const auto count = base::parse_count(arguments.get(flag));
  if (count && *count >= least && *count <= most) return count;
  return usage(fmt::format("{} wants a whole number from {} to {}, not '{}'", flag, least, most, arguments.get(flag)));
}

Result<double> number_of(const Arguments& arguments, std::string_view flag, double most) {
  return number_in<double>(arguments, flag, fmt::format("a number above 0 and up to {}", most), DBL_MIN, most);
}

Result<BenchPlan> plan_like(const Arguments& arguments, bench::LikeRequest request) {
  LLMPROF_LET(const std::vector<base::Axis> axes, given_axes(arguments));
  request.batches = {1};
  for (const base::Axis& axis : axes) {
    if (axis.name == "batch") {
      request.batches = axis.values;
    } else if (axis.name == "seq") {
      request.seqs = axis.values;
    } else if (axis.name == "context") {
      request.contexts = axis.values;
    } else {
      return usage(fmt::format("{}: with --like the model says it", axis_flag(axis.name)),
                   "--like takes --batch, --seq (prefill) and --context (decode)");
    }
  }
  if (request.seqs.empty() && request.contexts.empty()) {
    request.seqs = {512};
    request.contexts = {4096};
  }
  LLMPROF_LET(const model::OpenedModel opened, model::open_model(arguments.get("--like")));
  LLMPROF_LET(bench::LikePlan plan, bench::plan_like(opened.config, request));
  return BenchPlan{std::move(plan.points), std::move(plan.left_out)};
}

Result<BenchPlan> plan_from(const Arguments& arguments, bench::FromRunRequest request) {
  LLMPROF_LET(const std::vector<base::Axis> axes, given_axes(arguments));
  const bool gemm_only = std::ranges::all_of(arguments.positionals, [](const std::string& op) { return op == "gemm"; });
  if (!axes.empty() || !gemm_only) {
    return usage("--from measures the matrix products of the run: it takes no other operator and no axis",
                 "llmprof bench --from RUN --top 5");
  }
  LLMPROF_LET(const std::int64_t top, count_of(arguments, "--top", 1, 1000));
  request.top = static_cast<std::size_t>(top);
  LLMPROF_LET(const trace::Run run, record::open_run(arguments.get("--from"), progress_line()));
  LLMPROF_LET(std::vector<bench::Point> points, bench::plan_from_run(run, request));
  return BenchPlan{std::move(points), {}};
}

}  // namespace

Result<std::vector<bench::Type>> types_in(const Arguments& arguments) {
  std::vector<bench::Type> types;
  const std::string list = arguments.get("--dtype");
  if (list.empty()) return types;
  for (const std::string_view word : base::split(list, ',')) {
    const auto type = bench::parse_type(word);
    if (!type || *type == bench::Type::kInt32) {  // int32 is what products of int8 are added up in
      std::string known;
      for (const bench::Type each : bench::kAllTypes)
        known += fmt::format("{}{}", known.empty() ? "" : ", ", type_name(each));
      return usage(fmt::format("--dtype: there is no type '{}'", word), "there are " + known);
    }
    if (std::ranges::find(types, *type) == types.end()) types.push_back(*type);
  }
  return types;
}

std::string axis_flag(std::string_view axis) {
  std::string flag = "--" + std::string(axis);
  std::ranges::replace(flag, '_', '-');
  return flag;
}

std::span<const Option> axis_options() {
  static const std::deque<std::string>& texts = *[] {
    auto* made = new std::deque<std::string>;  // never destroyed: options point into it
    for (const AxisRow& row : axis_rows()) {
      made->push_back(axis_flag(row.name));
      made->push_back(help_of(row));
    }
    return made;
  }();
  static const std::vector<Option> options = [] {
    std::vector<Option> made;
    for (std::size_t i = 0; i + 1 < texts.size(); i += 2)
      made.push_back({texts[i], "", "", "VALUES", "", texts[i + 1]});
    return made;
  }();
  return options;
}

Result<bench::BenchOptions> bench_options(const Arguments& arguments) {
  bench::BenchOptions options;
  LLMPROF_LET(options.measure.limit_seconds, number_of(arguments, "--limit", 86'400));
  LLMPROF_LET(const std::int64_t least, count_of(arguments, "--min-samples", 1, 1'000'000));
  options.measure.least_samples = static_cast<std::size_t>(least);
  options.measure.most_samples = std::max(options.measure.most_samples, options.measure.least_samples);
  LLMPROF_LET(const double spread, number_of(arguments, "--spread", 100));
  options.measure.relative_spread = spread / 100;
  options.check = !arguments.on("--no-check");
  options.graph = !arguments.on("--no-graph");
  if (arguments.given("--threads")) {
    LLMPROF_LET(options.threads, count_of(arguments, "--threads", 1, 4096));
  }
  LLMPROF_LET(const std::int64_t seed, count_of(arguments, "--seed", 0, INT64_MAX));
  options.seed = static_cast<std::uint64_t>(seed);
  return options;
}

Result<BenchPlan> bench_plan(const Arguments& arguments) {
  if (arguments.given("--for")) return plan_for(arguments);
  LLMPROF_LET(const bench::Variants variants, given_variants(arguments));
  LLMPROF_LET(const std::vector<bench::Type> types, types_in(arguments));
  const bench::DeviceKind device = bench::kind_of_device(arguments.get("--device"));
  if (arguments.given("--like")) {
    return plan_like(arguments,
                     {.operators = arguments.positionals, .types = types, .variants = variants, .device = device});
  }
  if (arguments.given("--from")) return plan_from(arguments, {.types = types, .variants = variants, .device = device});
  LLMPROF_LET(std::vector<base::Axis> axes, given_axes(arguments));
  LLMPROF_LET(std::vector<bench::Point> points, bench::plan_sweep({.operators = arguments.positionals,
                                                                   .axes = std::move(axes),
                                                                   .types = types,
                                                                   .variants = variants,
                                                                   .device = device}));
  return BenchPlan{std::move(points), {}};
}

}  // namespace llmprof::app
