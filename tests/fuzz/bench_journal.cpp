// Lines of a benchmark's journal, perhaps from a stranger: the sweep first, then finished points.

#include "base/json.h"
#include "bench/sweep/journal.h"
#include "fuzz.h"

namespace llmprof::fuzz {
namespace {

void run(std::string_view input) {
  const std::size_t end = std::min(input.find('\n'), input.size());
  const auto first = base::parse_json(input.substr(0, end), "line 1");
  if (!first) return;
  const auto sweep = bench::sweep_from_json(*first);
  if (!sweep) return;
  // What was read is written as it was read.
  const auto again = bench::sweep_from_json(bench::sweep_to_json(*sweep));
  require(bool(again));
  require(bench::sweep_to_json(*again) == bench::sweep_to_json(*sweep));
  if (end == input.size()) return;
  const auto second = base::parse_json(input.substr(end + 1), "line 2");
  if (!second) return;
  const auto finished = bench::finished_from_json(*second, *sweep);
  if (!finished) return;
  require(finished->point < sweep->points.size());
  require(bool(bench::finished_from_json(bench::finished_to_json(*finished), *sweep)));
}

std::vector<std::string> seeds() {
  bench::Sweep sweep{.llmprof_version = "0.1.0", .device = "cpu", .fingerprint = "cpu-1", .command = {"llmprof", "bench"}};
  bench::Point point;
  point.problem = {"residual_add", bench::Type::kFloat32, {{"batch", 1}, {"seq", 2}, {"hidden", 8}}};
  sweep.points.push_back(point);
  bench::Finished finished;
  finished.result.problem = point.problem;
  finished.result.status = bench::Status::kMeasured;
  finished.result.measured.samples = {1e-6, 2e-6};
  finished.result.measured.time = bench::statistics(finished.result.measured.samples);
  finished.result.error = 1e-8;
  const std::string first = bench::sweep_to_json(sweep).dump();
  return {first, first + "\n" + bench::finished_to_json(finished).dump()};
}

std::vector<std::string> dictionary() {
  return {"\"points\"", "\"op\"",     "\"axes\"", "\"type\"",   "\"float32\"", "\"residual_add\"", "\"samples\"",
          "\"point\"",  "\"status\"", "\"time\"", "\"device\"", "-1",          "1e999",            "9223372036854775808"};
}

}  // namespace

const Target kTarget{run, seeds, dictionary};

}  // namespace llmprof::fuzz
