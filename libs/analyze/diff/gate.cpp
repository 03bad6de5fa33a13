#include "analyze/diff/diff.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "analyze/measures/measures.h"
#include "base/strings.h"
#include "base/suggest.h"

namespace llmprof::analyze {
namespace {

// What a prefix multiplies a unit by: "GB/s" is "B/s" with "G".
struct Prefix {
  std::string_view name;
  double factor;
};
constexpr Prefix kPrefixes[] = {{"", 1},     {"n", 1e-9},  {"u", 1e-6},     {"m", 1e-3},
                                {"k", 1e3},  {"M", 1e6},   {"G", 1e9},      {"T", 1e12},
                                {"P", 1e15}, {"Ki", 1024}, {"Mi", 1048576}, {"Gi", 1073741824}};

// How many of the measure's unit one of these is; nullopt: it is none of it.
std::optional<double> factor_of(std::string_view unit, std::string_view base) {
  if (unit == "min" && base == "s") return 60;
  if (unit == "%" && base == "1") return 0.01;
  if (unit == "/s" && base == "1/s") return 1;
  if (base.empty() || base == "1" || !unit.ends_with(base)) return std::nullopt;
  const auto* const found = std::ranges::find(kPrefixes, unit.substr(0, unit.size() - base.size()), &Prefix::name);
  return found == std::end(kPrefixes) ? std::nullopt : std::optional(found->factor);
}

constexpr std::string_view kScopes[] = {"run",    "requests", "prefill", "decode",  "mixed",    "draft",     "verify",
                                        "encode", "load",     "warm-up", "forward", "backward", "optimizer", "other"};

Error wrong(std::string_view gate, std::string message, std::string hint) {
  return {ErrorCode::kUsage, fmt::format("gate '{}': {}", gate, message), std::move(hint)};
}

Result<void> check_name(const Gate& gate) {
  const std::size_t dot = gate.measure.find('.');
  if (dot == std::string::npos || gate.measure.size() > 80) {
    return wrong(gate.text, "a measure is <stage>.<name>, requests.<name> or run.<name>",
                 "for example decode.tpot_p50, run.wall");
  }
  const std::string_view scope = std::string_view(gate.measure).substr(0, dot);
  const std::string_view name = std::string_view(gate.measure).substr(dot + 1);
  if (std::ranges::count(kScopes, scope) == 0) {
    return wrong(gate.text, fmt::format("'{}' is no stage", scope),
                 base::did_you_mean(scope, kScopes, 3) + "or run, for the whole run, or requests");
  }
  std::vector<std::string> names;
  for (const MeasureKind& kind : measure_kinds()) names.emplace_back(kind.name);
  if (std::find(names.begin(), names.end(), name) == names.end()) {
    return wrong(gate.text, fmt::format("there is no measure '{}'", name),
                 base::did_you_mean(name, names, 3) + "all of them: llmprof report --explain list");
  }
  return {};
}

// "+3%", "0.70", "12ms", "80 %".
Result<void> parse_limit(std::string_view text, Gate& gate) {
  const bool sign = !text.empty() && (text.front() == '+' || text.front() == '-');
  std::string_view digits = text;
  if (!digits.empty() && digits.front() == '+') digits.remove_prefix(1);
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), gate.limit);
  if (error != std::errc{} || !std::isfinite(gate.limit)) {
    return wrong(gate.text, fmt::format("'{}' is no number", text), "for example +3%, 0.70, 12ms, 5GB");
  }
  const std::string_view unit = base::trimmed(digits.substr(static_cast<std::size_t>(end - digits.data())));
  const MeasureKind& kind = *find_measure_kind(gate.measure);
  gate.relative = sign && unit == "%";
  if (gate.relative) {
    gate.limit *= 0.01;
    return {};
  }
  if (unit.empty()) return {};
  const std::optional<double> factor = factor_of(unit, kind.unit);
  if (!factor) {
    return wrong(gate.text, fmt::format("'{}' is no unit of {}", unit, gate.measure),
                 unit == "%" ? "a change against before has a sign: +3%, -5%"
                             : fmt::format("it is in {}", kind.unit.empty() ? "plain numbers" : kind.unit));
  }
  gate.limit *= *factor;
  return {};
}

Result<Gate> parse_gate(std::string_view text) {
  Gate gate{.text = std::string(text)};
  const std::size_t at = text.find_first_of("<>");
  if (at == std::string_view::npos) {
    return wrong(text, "it has no <, <=, > or >=", "for example 'decode.tpot_p50 < +3%'");
  }
  const std::size_t length = at + 1 < text.size() && text[at + 1] == '=' ? 2 : 1;
  gate.op = text[at] == '<' ? (length == 2 ? "<=" : "<") : (length == 2 ? ">=" : ">");
  gate.measure = base::trimmed(text.substr(0, at));
  LLMPROF_TRY(check_name(gate));
  LLMPROF_TRY(parse_limit(base::trimmed(text.substr(at + length)), gate));
  return gate;
}

bool holds(double value, std::string_view op, double limit) {
  if (op == "<") return value < limit;
  if (op == "<=") return value <= limit;
  return op == ">" ? value > limit : value >= limit;
}

struct Known {
  std::vector<Estimate> values;
  std::string why;  // why there are none
};

Known known_of(const Side& side, const std::string& measure) {
  Known known;
  for (const Digest& run : side.runs) {
    const MeasureDigest* found = find_measure(run, measure);
    if (found != nullptr && found->value) {
      known.values.push_back(*found->value);
    } else if (known.why.empty()) {
      known.why = found == nullptr ? fmt::format("{} has no {}", run.name, measure)
                                   : fmt::format("{} is unknown in {}: {}", measure, run.name, found->why);
    }
  }
  if (side.runs.empty()) known.why = "there is nothing to compare with";
  return known;
}

// A limit against before means little where the two did not do the same: says so, and what can be compared.
std::string warning_of(const std::string& measure, const Side& before, const Side& after, const WorkDiff& work) {
  const std::string caveat = measure_caveat(work, measure);
  if (caveat.empty()) return "";
  const std::string stage = measure.substr(0, measure.find('.'));
  std::string other = comparable_measure(before, after, stage);
  for (const StageWork& each : work.stages) {
    if (other.empty() && stage == "run") other = comparable_measure(before, after, each.stage);
  }
  return fmt::format(
      "{}; {}", caveat,
      other.empty() ? "its MFU and MBU, which would be comparable, are unknown" : "comparable: " + other);
}

}  // namespace

std::span<const std::string_view> gate_scopes() { return kScopes; }

Result<std::vector<Gate>> parse_gates(std::string_view text) {
  std::vector<Gate> gates;
  for (const std::string_view part : base::split(text, ';')) {
    const std::string_view one = base::trimmed(part);
    if (one.empty()) continue;
    LLMPROF_LET(Gate gate, parse_gate(one));
    gates.push_back(std::move(gate));
  }
  return gates;
}

std::vector<GateResult> check_gates(const std::vector<Gate>& gates, const Side& before, const Side& after,
                                    const Diff& diff) {
  std::vector<GateResult> results;
  for (const Gate& gate : gates) {
    GateResult result{.gate = gate, .unit = std::string(find_measure_kind(gate.measure)->unit)};
    const Known a = known_of(before, gate.measure), b = known_of(after, gate.measure);
    if (!a.values.empty()) result.before = mean_of_runs(a.values).value;
    if (!b.values.empty()) result.after = mean_of_runs(b.values).value;
    const bool whole = gate.measure.starts_with("run.") || gate.measure.starts_with("requests.");
    if (const DiffRow* row =
            find_row(diff, "measure", whole ? "" : gate.measure.substr(0, gate.measure.find('.')), gate.measure)) {
      result.significant = row->significant;
    }
    result.change = change_between(a.values, b.values);
    if (b.values.empty()) {
      result.why = b.why;
    } else if (gate.relative && a.values.empty()) {
      result.why = a.why;
    } else if (gate.relative && !result.change.ratio) {
      result.why = "it was 0 before: a change in percent means nothing";
    } else {
      result.passed = holds(gate.relative ? *result.change.ratio : *result.after, gate.op, gate.limit);
      if (gate.relative) result.warning = warning_of(gate.measure, before, after, diff.work);
    }
    results.push_back(std::move(result));
  }
  return results;
}

}  // namespace llmprof::analyze
