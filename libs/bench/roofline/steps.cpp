#include "bench/roofline/steps.h"

#include <algorithm>
#include <chrono>

namespace llmprof::bench {
namespace {

using Clock = std::chrono::steady_clock;

std::string reason(const Error& error) {
  return error.hint.empty() ? error.message : error.message + "; " + error.hint;
}

}  // namespace

Result<std::vector<hw::PeakRow>> run_steps(const std::vector<RooflineStep>& steps, const base::Progress& progress) {
  double total = 0, done = 0;
  for (const RooflineStep& step : steps) total += step.seconds;
  std::vector<hw::PeakRow> rows;
  for (const RooflineStep& step : steps) {
    const auto begin = Clock::now();
    const GoOn go_on = [&] {
      const double spent = std::chrono::duration<double>(Clock::now() - begin).count();
      return progress({step.name, done + std::min(spent, step.seconds), total, "s"});
    };
    if (!go_on()) return Error{ErrorCode::kInterrupted, "interrupted; the stored peaks are as they were", ""};
    Result<std::vector<hw::PeakRow>> measured = step.run(go_on);
    if (measured) {
      std::move(measured->begin(), measured->end(), std::back_inserter(rows));
    } else if (measured.error().code == ErrorCode::kInterrupted) {
      return Error{ErrorCode::kInterrupted, "interrupted; the stored peaks are as they were", ""};
    } else {
      rows.push_back({step.wanted, reason(measured.error())});
    }
    done += step.seconds;
  }
  return rows;
}

hw::Peak wanted_peak(std::string quantity, std::string type, std::string unit) {
  hw::Peak peak;
  peak.quantity = std::move(quantity);
  peak.type = std::move(type);
  peak.unit = std::move(unit);
  return peak;
}

std::function<Result<std::vector<hw::PeakRow>>(const GoOn&)> one_peak(
    std::function<Result<hw::Peak>(const GoOn&)> run) {
  return [run = std::move(run)](const GoOn& go_on) -> Result<std::vector<hw::PeakRow>> {
    LLMPROF_LET(hw::Peak peak, run(go_on));
    return std::vector<hw::PeakRow>{{std::move(peak), ""}};
  };
}

}  // namespace llmprof::bench
