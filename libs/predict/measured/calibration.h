#pragma once
// What recorded steps add to times that are composed of operators: one factor for the device, and what the host takes.
// Few parameters, each with a name, an interval and the number of steps that it stands on; what a run does not tell
// apart stays out and says why. Kept beside the operator tables that it corrects.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "predict/forecast.h"
#include "predict/measured/store.h"

namespace llmprof::predict {

// A step of a run: what its operators take together by tables, and what it took.
struct ObservedStep {
  double device_ns = 0;  // by tables
  double took_ns = 0;    // from its begin to that of the next
  std::int64_t requests = 0, new_requests = 0;
};

struct Term {
  std::string name;          // "per_step_ns"
  double value = 0;          // of a factor 1, else 0, where it is not determined
  double low = 0, high = 0;  // 90 % interval
  bool determined = false;
  std::string why;  // why it is not
};

struct Calibration {
  Term device_factor{.name = "device_factor", .value = 1, .low = 1, .high = 1, .why = {}};
  Term per_step_ns{.name = "per_step_ns", .why = {}}, per_request_ns{.name = "per_request_ns", .why = {}},
      per_new_request_ns{.name = "per_new_request_ns", .why = {}};
  std::int64_t steps = 0, left_out = 0;  // left out: the engine waited for requests
  double median_error = 0;               // of the steps with these terms: median of |predicted / took - 1|
  bool async = false;                    // the host prepares a step while the device computes the one before
  std::string run, date, llmprof_version;
  std::string tables, tables_date;    // what it corrects: their folder, and when they were measured
  TimesOf times = TimesOf::kInGraph;  // which of their times

  std::vector<const Term*> terms() const {
    return {&device_factor, &per_step_ns, &per_request_ns, &per_new_request_ns};
  }
};

inline constexpr std::int64_t kFewestCalibrationSteps = 20;

// Terms that fit the steps best: least absolute errors beyond 1.3 deviations, squares below, so that single slow steps
// say little; host terms are not negative. Intervals: steps drawn anew (bootstrap, a fixed seed). With `async`, host
// terms are not determined. Errors: too few steps.
Result<Calibration> fit_calibration(std::vector<ObservedStep> steps, bool async);

// In the folder of the key's tables. Replaces what was there.
Result<std::string> keep_calibration(const TablesKey& key, const Calibration& calibration);
// nullopt: there is none, or it corrects other tables than these.
std::optional<Calibration> kept_calibration(const TablesKey& key, const OperatorTables& tables, TimesOf times);
// A folder by its full name, as Calibration::tables has it.
std::string whole_path(const std::string& folder);
// When tables in a folder were measured, as their meta.json says; "" it does not.
std::string tables_date(const std::string& folder);

// Uses it for a prediction, and says so in the notes.
void calibrate(ServingInput& input, const Calibration& calibration);
// What a prediction holds that terms of a calibration multiply.
struct CalibratedLoad {
  double device_ns = 0, host_ns = 0;
  double steps = 0, requests = 0, new_requests = 0;  // requests: of all steps together
};
// A prediction's error with that of its calibration in it.
void widen(StepError& error, const Calibration& calibration, const CalibratedLoad& load);

}  // namespace llmprof::predict
