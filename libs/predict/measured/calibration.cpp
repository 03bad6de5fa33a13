#include "predict/measured/calibration.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <limits>

#include "base/file.h"
#include "base/human.h"
#include "base/json.h"
#include "serving/random.h"

namespace llmprof::predict {
namespace {

constexpr std::size_t kTerms = 4;  // device, step, request, new request
using Values = std::array<double, kTerms>;
using Chosen = std::array<bool, kTerms>;

constexpr std::size_t kMostFitted = 2000;  // steps; more say the same
constexpr int kResamples = 200;
constexpr double kHuber = 1.345, kDeviations = 1.4826;  // of a median absolute deviation
constexpr double kAlike = 0.05;                         // predicted times that differ less than this say no factor
constexpr double kApart = 0.01;  // what other columns leave unexplained of one, for it to be told apart
constexpr std::int64_t kFewOf = 5;

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

// A step as an equation: terms by columns make the time; both by about how long it takes, as errors are in proportion.
struct Equation {
  Values columns{};
  double time = 0, scale = 1;
};

Values columns_of(const ObservedStep& step) {
  return {step.device_ns, 1, static_cast<double>(step.requests), static_cast<double>(step.new_requests)};
}

std::vector<Equation> equations_of(const std::vector<ObservedStep>& steps) {
  std::vector<double> above;
  for (const ObservedStep& step : steps) above.push_back(std::max(0.0, step.took_ns - step.device_ns));
  const double usual = median(above);
  std::vector<Equation> out;
  for (const ObservedStep& step : steps) {
    Equation each{columns_of(step), step.took_ns, step.device_ns + usual};
    for (double& column : each.columns) column /= each.scale;
    each.time /= each.scale;
    out.push_back(each);
  }
  return out;
}

// Sums of products: what a weighted least-squares fit needs to know of the equations.
struct Products {
  std::array<Values, kTerms> left{};
  Values right{};
  double squares = 0;
  void add(const Equation& e, double weight) {
    for (std::size_t i = 0; i < kTerms; ++i) {
      for (std::size_t j = 0; j < kTerms; ++j) left[i][j] += weight * e.columns[i] * e.columns[j];
      right[i] += weight * e.columns[i] * e.time;
    }
    squares += weight * e.time * e.time;
  }
};

// By elimination with pivots on the diagonal; columns that are not chosen stay 0. nullopt: they are not independent.
std::optional<Values> solve(Products p, const Chosen& chosen) {
  std::vector<std::size_t> used;
  for (std::size_t i = 0; i < kTerms; ++i) {
    if (chosen[i]) used.push_back(i);
  }
  Values norms{};
  for (const std::size_t i : used) {
    norms[i] = p.left[i][i];
    if (!(norms[i] > 0)) return std::nullopt;
  }
  for (std::size_t n = 0; n < used.size(); ++n) {
    const std::size_t at = used[n];
    if (!(p.left[at][at] > 1e-10 * norms[at])) return std::nullopt;
    for (std::size_t m = n + 1; m < used.size(); ++m) {
      const std::size_t row = used[m];
      const double times = p.left[row][at] / p.left[at][at];
      for (const std::size_t column : used) p.left[row][column] -= times * p.left[at][column];
      p.right[row] -= times * p.right[at];
    }
  }
  Values out{};
  for (std::size_t n = used.size(); n-- > 0;) {
    double rest = p.right[used[n]];
    for (std::size_t m = n + 1; m < used.size(); ++m) rest -= p.left[used[n]][used[m]] * out[used[m]];
    out[used[n]] = rest / p.left[used[n]][used[n]];
  }
  return out;
}

// The best of all choices of terms that are not 0, none of them negative. A factor that is not asked for is 1.
Values least_squares(const std::vector<Equation>& equations, const std::vector<double>& weights, const Chosen& chosen) {
  Products products;
  for (std::size_t i = 0; i < equations.size(); ++i) {
    Equation each = equations[i];
    if (!chosen[0]) each.time -= each.columns[0];
    products.add(each, weights[i]);
  }
  Values best{};
  double least = std::numeric_limits<double>::infinity();
  for (unsigned set = 0; set < 1U << kTerms; ++set) {
    Chosen some{};
    bool asked = true;
    for (std::size_t i = 0; i < kTerms; ++i) {
      some[i] = (set >> i & 1) != 0;
      asked = asked && (!some[i] || chosen[i]);
    }
    if (!asked || (chosen[0] && !some[0])) continue;
    const std::optional<Values> found = solve(products, some);
    if (!found || std::ranges::any_of(*found, [](double value) { return value < 0; })) continue;
    double squares = products.squares;
    for (std::size_t i = 0; i < kTerms; ++i) squares -= (*found)[i] * products.right[i];
    if (squares < least) least = squares, best = *found;
  }
  if (!chosen[0]) best[0] = 1;
  return best;
}

double time_of(const Values& terms, const Values& columns) {
  double sum = 0;
  for (std::size_t i = 0; i < kTerms; ++i) sum += terms[i] * columns[i];
  return sum;
}

// Weights by the distance to the fit before, a few times over.
Values robust_fit(const std::vector<Equation>& equations, const Chosen& chosen) {
  std::vector<double> weights(equations.size(), 1), off(equations.size());
  Values terms{};
  for (int round = 0; round < 6; ++round) {
    terms = least_squares(equations, weights, chosen);
    for (std::size_t i = 0; i < equations.size(); ++i)
      off[i] = std::abs(equations[i].time - time_of(terms, equations[i].columns));
    const double limit = kHuber * kDeviations * median(off);
    if (!(limit > 0)) break;
    for (std::size_t i = 0; i < equations.size(); ++i) weights[i] = off[i] <= limit ? 1 : limit / off[i];
  }
  return terms;
}

// What is left of a column when the other chosen ones, and a constant, explain it as far as they can: 0 to 1.
double unexplained(const std::vector<Equation>& equations, std::size_t column, Chosen others) {
  others[column] = false, others[1] = true;
  Products products;
  double mean = 0;
  const auto count = static_cast<double>(equations.size());
  for (const Equation& each : equations) mean += each.columns[column] * each.scale / count;
  double variance = 0;
  for (Equation each : equations) {
    for (double& value : each.columns) value *= each.scale;
    each.time = each.columns[column];
    variance += (each.time - mean) * (each.time - mean);
    products.add(each, 1);
  }
  const std::optional<Values> found = solve(products, others);
  if (!found || !(variance > 0)) return 0;
  double squares = products.squares;
  for (std::size_t i = 0; i < kTerms; ++i) squares -= (*found)[i] * products.right[i];
  return std::max(0.0, squares) / variance;
}

// Which terms a run can tell; the others get the reason.
Chosen choose(const std::vector<ObservedStep>& steps, const std::vector<Equation>& equations, Calibration& out) {
  Chosen chosen{true, true, true, true};
  const auto leave_out = [&](std::size_t place, Term& term, std::string why) {
    if (!chosen[place]) return;
    chosen[place] = false;
    term.why = std::move(why);
  };
  if (out.async) {
    constexpr const char* kHidden = "the engine prepares steps while the device works: the host's time is hidden";
    leave_out(1, out.per_step_ns, kHidden), leave_out(2, out.per_request_ns, kHidden);
    leave_out(3, out.per_new_request_ns, kHidden);
    return chosen;
  }
  const auto [least, most] = std::ranges::minmax_element(steps, {}, &ObservedStep::device_ns);
  if (most->device_ns < least->device_ns * (1 + kAlike))
    leave_out(0, out.device_factor, "all steps are predicted to take the device about the same time");
  const auto [fewest, highest] = std::ranges::minmax_element(steps, {}, &ObservedStep::requests);
  if (fewest->requests == highest->requests)
    leave_out(2, out.per_request_ns, fmt::format("all steps have {} requests", fewest->requests));
  const auto fresh = std::ranges::count_if(steps, [](const ObservedStep& step) { return step.new_requests > 0; });
  if (fresh < kFewOf || static_cast<std::int64_t>(steps.size()) - fresh < kFewOf)
    leave_out(3, out.per_new_request_ns, fmt::format("{} of {} steps begin a request", fresh, steps.size()));
  // Two columns that grow together cannot be told apart: the device's keeps what both would say.
  constexpr const char* kTogether =
      "it changes together with the other terms: what it takes is counted in them, above all in device_factor";
  if (chosen[3] && unexplained(equations, 3, chosen) < kApart) leave_out(3, out.per_new_request_ns, kTogether);
  if (chosen[2] && unexplained(equations, 2, chosen) < kApart) leave_out(2, out.per_request_ns, kTogether);
  return chosen;
}

void leave_out_waits(std::vector<ObservedStep>& steps, Calibration& out) {
  std::vector<double> above, spread;
  for (const ObservedStep& step : steps) above.push_back(step.took_ns / step.device_ns);
  const double usual = median(above);
  for (const double each : above) spread.push_back(std::abs(each - usual));
  constexpr double kFar = 20;
  const double limit = usual * 1.5 + kFar * kDeviations * median(spread);
  const std::size_t before = steps.size();
  std::erase_if(steps, [&](const ObservedStep& step) { return step.took_ns / step.device_ns > limit; });
  out.left_out = static_cast<std::int64_t>(before - steps.size());
}

void set_intervals(const std::vector<Equation>& equations, const Chosen& chosen,
                   const std::array<Term*, kTerms>& terms) {
  serving::Random random(1);  // the same answer every time
  std::array<std::vector<double>, kTerms> drawn;
  std::vector<Equation> sample(equations.size());
  const auto last = static_cast<std::int64_t>(equations.size()) - 1;
  for (int i = 0; i < kResamples; ++i) {
    for (Equation& each : sample) each = equations[static_cast<std::size_t>(random.between(0, last))];
    const Values values = robust_fit(sample, chosen);
    for (std::size_t t = 0; t < kTerms; ++t) drawn[t].push_back(values[t]);
  }
  for (std::size_t t = 0; t < kTerms; ++t) {
    if (!chosen[t]) continue;
    std::ranges::sort(drawn[t]);
    terms[t]->low = std::min(terms[t]->value, drawn[t][kResamples / 20]);
    terms[t]->high = std::max(terms[t]->value, drawn[t][kResamples - 1 - kResamples / 20]);
  }
}

base::Json json_of(const Term& term) {
  return {{"name", term.name}, {"value", term.value},           {"low", term.low},
          {"high", term.high}, {"determined", term.determined}, {"why", term.why}};
}

std::string place_of(const TablesKey& key) {
  const std::string folder = kept_folder(key);
  return folder.empty() ? "" : folder + "/calibration.json";
}

bool read_term(const base::Json& json, Term& term) {
  for (const base::Json& each : json) {
    if (!each.is_object() || !each.contains("name") || each["name"] != term.name) continue;
    const auto number = [&](const char* key) {
      const auto at = each.find(key);
      return at != each.end() && at->is_number() ? at->get<double>() : -1.0;
    };
    const auto yes = each.find("determined");
    term.value = number("value"), term.low = number("low"), term.high = number("high");
    term.determined = yes != each.end() && yes->is_boolean() && yes->get<bool>();
    return term.value >= 0 && term.low >= 0 && term.low <= term.value && term.value <= term.high && term.high < 1e12;
  }
  return false;
}

std::string words_of(const Term& term, bool factor) {
  const auto value = [&](double v) { return factor ? fmt::format("{:.3f}", v) : base::human_ns(v); };
  std::string name = term.name.ends_with("_ns") ? term.name.substr(0, term.name.size() - 3) : term.name;
  std::ranges::replace(name, '_', ' ');
  return fmt::format("{} {} ({} … {})", name, value(term.value), value(term.low), value(term.high));
}

}  // namespace

Result<Calibration> fit_calibration(std::vector<ObservedStep> steps, bool async) {
  Calibration out;
  out.async = async;
  std::erase_if(steps, [](const ObservedStep& step) { return !(step.device_ns > 0) || !(step.took_ns > 0); });
  if (!steps.empty()) leave_out_waits(steps, out);
  out.steps = static_cast<std::int64_t>(steps.size());
  if (out.steps < kFewestCalibrationSteps) {
    return Error{ErrorCode::kUsage, fmt::format("{} steps are too few to calibrate by", out.steps),
                 fmt::format("it wants {} steady steps whose batches are known", kFewestCalibrationSteps)};
  }
  if (steps.size() > kMostFitted) {
    std::vector<ObservedStep> some;
    for (std::size_t i = 0; i < kMostFitted; ++i) some.push_back(steps[i * steps.size() / kMostFitted]);
    steps = std::move(some);
  }
  const std::vector<Equation> equations = equations_of(steps);
  const Chosen chosen = choose(steps, equations, out);
  const Values values = robust_fit(equations, chosen);
  const std::array<Term*, kTerms> terms{&out.device_factor, &out.per_step_ns, &out.per_request_ns,
                                        &out.per_new_request_ns};
  for (std::size_t i = 0; i < kTerms; ++i) {
    if (!chosen[i]) continue;
    terms[i]->value = terms[i]->low = terms[i]->high = values[i];
    terms[i]->determined = true;
  }
  set_intervals(equations, chosen, terms);
  std::vector<double> off;
  for (const ObservedStep& step : steps) off.push_back(std::abs(time_of(values, columns_of(step)) / step.took_ns - 1));
  out.median_error = median(off);
  return out;
}

std::string whole_path(const std::string& folder) {
  std::error_code ignored;
  const std::filesystem::path path = std::filesystem::weakly_canonical(folder, ignored);
  return folder.empty() || ignored ? folder : path.string();
}

std::string tables_date(const std::string& folder) {
  const auto text = base::read_file(folder + "/meta.json", 4 << 20);
  if (!text) return "";
  const auto json = base::parse_json(*text, "meta.json");
  if (!json || !json->is_object() || !json->contains("date") || !(*json)["date"].is_string()) return "";
  return (*json)["date"].get<std::string>();
}

Result<std::string> keep_calibration(const TablesKey& key, const Calibration& calibration) {
  const std::string path = place_of(key);
  if (path.empty()) return Error{ErrorCode::kNotFound, "no folder to keep a calibration in", "set LLMPROF_CACHE_DIR"};
  base::Json terms = base::Json::array();
  for (const Term* term : calibration.terms()) terms.push_back(json_of(*term));
  const base::Json json{{"schema", "llmprof.calibration"},
                        {"schema_version", 1},
                        {"llmprof_version", calibration.llmprof_version},
                        {"date", calibration.date},
                        {"run", calibration.run},
                        {"steps", calibration.steps},
                        {"left_out", calibration.left_out},
                        {"median_error", calibration.median_error},
                        {"async_scheduling", calibration.async},
                        {"tables", calibration.tables},
                        {"tables_date", calibration.tables_date},
                        {"times", calibration.times == TimesOf::kInGraph ? "graph_us" : "time_us"},
                        {"terms", terms}};
  LLMPROF_TRY(base::make_directories(kept_folder(key)));
  LLMPROF_TRY(base::write_file(path, base::to_text(json)));
  return path;
}

std::optional<Calibration> kept_calibration(const TablesKey& key, const OperatorTables& tables, TimesOf times) {
  const auto read = base::read_json(place_of(key));
  if (!read || !read->is_object() || !read->contains("terms")) return std::nullopt;
  const base::Json& json = *read;
  const auto text = [&](const char* name) {
    const auto at = json.find(name);
    return at != json.end() && at->is_string() ? at->get<std::string>() : std::string();
  };
  const auto count = [&](const char* name) {
    const auto at = json.find(name);
    return at != json.end() && at->is_number_integer() ? at->get<std::int64_t>() : 0;
  };
  Calibration out;
  if (!read_term(json["terms"], out.device_factor) || !read_term(json["terms"], out.per_step_ns) ||
      !read_term(json["terms"], out.per_request_ns) || !read_term(json["terms"], out.per_new_request_ns))
    return std::nullopt;
  out.run = text("run"), out.date = text("date"), out.llmprof_version = text("llmprof_version");
  out.tables = text("tables"), out.tables_date = text("tables_date");
  out.steps = count("steps"), out.left_out = count("left_out");
  if (const auto at = json.find("async_scheduling"); at != json.end() && at->is_boolean()) out.async = at->get<bool>();
  out.times = text("times") == "time_us" ? TimesOf::kKernels : TimesOf::kInGraph;
  const bool same = out.times == times && !out.tables.empty() && out.tables == whole_path(tables.source.folder) &&
                    out.tables_date == tables_date(out.tables);
  return same && out.device_factor.value > 0 ? std::optional(out) : std::nullopt;
}

void calibrate(ServingInput& input, const Calibration& calibration) {
  input.calibration = std::make_shared<const Calibration>(calibration);
  input.device_factor = calibration.device_factor.value;
  input.host = {calibration.per_step_ns.value, calibration.per_request_ns.value, calibration.per_new_request_ns.value,
                fmt::format("{} steps of {}", calibration.steps, calibration.run)};
  std::string terms, unknown;
  for (const Term* term : calibration.terms()) {
    if (term->determined) {
      terms += fmt::format("{}{}", terms.empty() ? "" : ", ", words_of(*term, term == &calibration.device_factor));
    } else {
      unknown += fmt::format("{}{}", unknown.empty() ? "" : ", ", term->name);
    }
  }
  input.notes.push_back(
      fmt::format("calibrated by {} steps of {} ({}): {} (90 % intervals){}; --no-calibration leaves it out",
                  calibration.steps, calibration.run, calibration.date.substr(0, 10), terms.empty() ? "nothing" : terms,
                  unknown.empty() ? "" : fmt::format("; that run did not determine {}", unknown)));
}

void widen(StepError& error, const Calibration& calibration, const CalibratedLoad& load) {
  const double all = load.device_ns + load.host_ns;
  if (!(all > 0)) return;
  const Term& factor = calibration.device_factor;
  double low_ns = load.device_ns * (1 - factor.low / factor.value),
         high_ns = load.device_ns * (factor.high / factor.value - 1);
  const auto add = [&](const Term& term, double times) {
    low_ns += (term.value - term.low) * times, high_ns += (term.high - term.value) * times;
  };
  add(calibration.per_step_ns, load.steps);
  add(calibration.per_request_ns, load.requests);
  add(calibration.per_new_request_ns, load.new_requests);
  error.least = std::max(0.0, error.least - low_ns / all), error.most += high_ns / all;
  error.why += fmt::format("{}the calibration's intervals -{} +{}", error.why.empty() ? "" : ", ",
                           base::human_percent(low_ns / all), base::human_percent(high_ns / all));
}

}  // namespace llmprof::predict
