#include "predict/implementation/measured_steps.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "base/json.h"
#include "base/strings.h"

namespace llmprof::predict {
namespace {

// A decode step ends, for whoever waits for its token, where the next begins: what the host does between them is part
// of it. Behind the last one comes something else, which is not.
constexpr std::string_view kDurations = R"(
WITH placed AS (
  SELECT a.step_id, count(*) AS rows, count(k.graph_launch_id) AS in_graph
  FROM attribution a JOIN kernel k ON k.id = a.kernel_id WHERE a.step_id IS NOT NULL GROUP BY 1),
graphs AS (SELECT DISTINCT step_id FROM launch_place WHERE step_id IS NOT NULL),
steps AS (
  SELECT *, lead(begin_ns) OVER w AS next_ns, lead(stage) OVER w AS next_stage FROM step
  WINDOW w AS (PARTITION BY thread_id ORDER BY begin_ns))
SELECT s.stage, s.batch, coalesce(s.rows, s.batch * s.tokens) AS new_tokens,
  coalesce(s.contexts, s.batch * s.context) AS attended,
  g.step_id IS NOT NULL AND coalesce(p.in_graph * 2 >= p.rows, true) AS graph,
  CASE WHEN s.stage = 'decode' THEN s.next_ns ELSE s.end_ns END - s.begin_ns AS ns
FROM steps s LEFT JOIN placed p ON p.step_id = s.id LEFT JOIN graphs g ON g.step_id = s.id
WHERE s.stage IN ('prefill', 'decode') AND s.kernels > 0 AND NOT coalesce(s.warm_up, false) AND s.batch > 0
  AND (s.stage = 'prefill' OR s.next_stage = 'decode')
ORDER BY s.id)";

// Stage, batch, new tokens, graph, and by how many doublings the context has grown.
using Group = std::tuple<std::string, std::int64_t, std::int64_t, bool, int>;
struct Times {
  std::vector<double> ns, context;
};

double quantile(std::vector<double>& values, double share) {
  std::ranges::sort(values);
  return values[static_cast<std::size_t>(share * static_cast<double>(values.size() - 1) + 0.5)];
}

double whole_tenths(double ns) { return std::round(ns * 10) / 10; }

}  // namespace

StepSize MeasuredSteps::size() const {
  const auto all = [&](double each) {
    return std::max<std::int64_t>(1, std::llround(each * static_cast<double>(batch)));
  };
  return {batch, all(tokens), all(context)};
}

Result<std::vector<MeasuredSteps>> measured_steps(const trace::Run& run) {
  LLMPROF_LET(const trace::ResultTable table, run.query(std::string(kDurations)));
  std::map<Group, Times> groups;
  for (const auto& row : table.rows) {
    const auto rows = row[2].maybe_int(), contexts = row[3].maybe_int();
    const double ns = row[5].as_double();
    if (!rows || *rows < 1 || !(ns > 0)) continue;
    const std::int64_t batch = row[1].as_int();
    const double context = static_cast<double>(contexts.value_or(*rows)) / static_cast<double>(batch);
    const bool decode = row[0].text == "decode";
    if (decode && !contexts) continue;
    const int doublings = decode ? static_cast<int>(std::log2(std::max(1.0, context))) : 0;
    Times& times = groups[{row[0].text, batch, *rows, row[4].as_int() != 0, doublings}];
    times.ns.push_back(ns), times.context.push_back(context);
  }
  std::vector<MeasuredSteps> out;
  for (auto& [group, times] : groups) {
    const auto& [stage, batch, rows, graph, doublings] = group;
    out.push_back({.stage = stage,
                   .batch = batch,
                   .tokens = static_cast<double>(rows) / static_cast<double>(batch),
                   .context = quantile(times.context, 0.5),
                   .graph = graph,
                   .ns = quantile(times.ns, 0.5),
                   .low_ns = quantile(times.ns, 0.1),
                   .high_ns = quantile(times.ns, 0.9),
                   .steps = static_cast<std::int64_t>(times.ns.size()),
                   .from = std::string(base::base_name(run.folder()))});
  }
  // A few steps of a range of contexts beside many of another are the end of a sequence, not a size of its own.
  constexpr std::int64_t kFew = 8;
  const auto alike = [](const MeasuredSteps& a, const MeasuredSteps& b) {
    return a.stage == b.stage && a.batch == b.batch && a.tokens == b.tokens && a.graph == b.graph;
  };
  std::erase_if(out, [all = out, alike](const MeasuredSteps& each) {
    return each.steps < kFew && std::ranges::any_of(all, [&](const MeasuredSteps& other) {
             return alike(each, other) && other.steps >= kFew;
           });
  });
  return out;
}

std::string to_lines(const std::vector<MeasuredSteps>& steps) {
  std::string out;
  for (const MeasuredSteps& each : steps) {
    out += base::to_line({{"stage", each.stage},
                          {"batch", each.batch},
                          {"tokens", each.tokens},
                          {"context", each.context},
                          {"launch", each.graph ? "graph" : "eager"},
                          {"ns", whole_tenths(each.ns)},
                          {"low_ns", whole_tenths(each.low_ns)},
                          {"high_ns", whole_tenths(each.high_ns)},
                          {"steps", each.steps},
                          {"from", each.from}}) +
           "\n";
  }
  return out;
}

Result<std::vector<MeasuredSteps>> parse_measured_steps(std::string_view lines, const std::string& where) {
  std::vector<MeasuredSteps> out;
  std::int64_t number = 0;
  for (const std::string_view line : base::split(lines, '\n')) {
    ++number;
    if (base::trimmed(line).empty()) continue;
    const auto bad = [&](std::string_view what) {
      return Error{ErrorCode::kCorruptInput, fmt::format("{}, line {}: {}", where, number, what),
                   "docs/format/step-backtests.md describes the lines"};
    };
    const Result<base::Json> json = base::parse_json(line, where);
    if (!json || !json->is_object()) return bad("not a JSON object");
    std::string wrong;
    const auto value = [&](const char* key, double otherwise) {  // otherwise: 0 for what must be there
      const auto at = json->find(key);
      const bool there = at != json->end() && at->is_number();
      const double found = there ? at->get<double>() : otherwise;
      if ((!(found > 0) || !std::isfinite(found) || found > 1e15) && wrong.empty()) wrong = key;
      return found;
    };
    const auto text = [&](const char* key) {
      const auto at = json->find(key);
      return at != json->end() && at->is_string() ? at->get<std::string>() : std::string();
    };
    MeasuredSteps each{.stage = text("stage")};
    const double ns = value("ns", 0), batch = value("batch", 1);
    const bool decode = each.stage == "decode";
    if (!decode && each.stage != "prefill") return bad("'stage' is neither prefill nor decode");
    each.tokens = value("tokens", decode ? 1 : 0);
    each.context = value("context", decode ? 0 : each.tokens);
    const std::string launch = text("launch");
    if (launch != "graph" && launch != "eager") return bad("'launch' is neither graph nor eager");
    each.graph = launch == "graph";
    each.ns = ns, each.low_ns = value("low_ns", ns), each.high_ns = value("high_ns", ns);
    each.steps = static_cast<std::int64_t>(value("steps", 1));
    each.from = text("from");
    if (!wrong.empty()) return bad(fmt::format("'{}' is missing or not possible", wrong));
    if (batch != std::floor(batch) || batch > 1e6) return bad("'batch' is no number of sequences");
    if (each.tokens * batch > 1e9 || each.context * batch > 1e12) return bad("more tokens than a step can have");
    each.batch = static_cast<std::int64_t>(batch);
    out.push_back(std::move(each));
  }
  return out;
}

}  // namespace llmprof::predict
