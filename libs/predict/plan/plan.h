#pragma once
// Which devices, parallelism, batch limits and how many replicas serve a load within its limits. Every way to serve is
// simulated with the steps as predicted and with all of them as long as they may be (StepError::most): one "meets" the
// limits if it keeps them even then, and "may meet" them if only as predicted.

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/progress.h"
#include "base/result.h"
#include "predict/deployment.h"
#include "predict/plan/judge.h"
#include "predict/plan/search.h"

namespace llmprof::predict::plan {

struct Asked {
  Deployment deployment;  // model, engine, settings, type of the KV cache; not its device, types and ranks
  model::OpenedModel model;
  std::vector<hw::DeviceAndPeaks> devices;
  std::vector<std::string> dtypes{""};  // of the weights; "": the model's own
  std::vector<std::int64_t> tensor{1, 2, 4, 8};
  std::int64_t most_devices = 256;
  serving::Workload workload;
  // Whether a replica can be simulated alone, under the same arrivals as many times as far apart as there are replicas:
  // of generated arrivals. A trace, or clients that wait for their answer, is given to all replicas together.
  bool stretch = true;
  bool repeat = true;  // with `stretch`: whether more requests come as the first did (those of a rising rate do not)
  double rate = 0;     // requests per second that the workload stands for; 0: it has none (clients that wait)
  Limits limits;
  std::map<std::string, double> prices;  // per hour and device, by Device::name
  // Measured times for this input and degree of tensor parallelism; may give none.
  std::function<Result<OperatorTables>(const ServingInput&, std::int64_t tensor)> tables;
};

// One replica, as an engine is started.
struct Way {
  std::size_t device = 0;  // of Asked::devices
  std::string dtype;       // as asked
  std::int64_t tensor = 1, expert = 1;
  std::int64_t max_num_seqs = 0, max_num_batched_tokens = 0;
};

// A number of replicas, judged.
struct Load {
  std::int64_t replicas = 1;
  Judged predicted, longest;  // steps as predicted, and all as long as they may be
  double busy_share = 0, kv_peak_share = 0, output_tokens_per_s = 0;  // of all replicas, as predicted
  bool steady = true;  // requests arrive for long enough that a growing queue would show
  bool front = false;
  std::optional<double> highest_rate;  // requests per second within the limits; of the front only
  bool rate_may_be_higher = false;     // beyond it so few requests do not tell
};

enum class Outcome : std::uint8_t {
  kServes,      // with some number of replicas
  kDoesNotFit,  // the memory of a device
  kRefused,     // the engine cannot serve the requests at all: no room for the longest
  kTooSlow,     // a request alone takes longer than the limits
  kTooMany,     // more devices than allowed
};

struct Configuration {
  Way way;
  std::string dtype;  // of the weights, the model's own named
  Outcome outcome = Outcome::kServes;
  MemoryNeeds memory;
  double granted_bytes = 0;  // of a device's memory, by the engine's rule
  std::int64_t kv_tokens = 0;
  Judged alone;  // each request alone, steps as predicted
  StepError error;
  BasisTimes stands_on;
  // The least replicas that keep the limits: with steps as long as they may be; with steps as predicted, where that is
  // fewer.
  std::optional<Load> meets, may;
  std::optional<Judged> with_most;  // kTooMany: with as many replicas as allowed, steps as predicted
  std::string why;                  // kDoesNotFit, kRefused: in words
  std::int64_t devices(const Load& load) const { return load.replicas * way.tensor; }
};

struct Plan {
  std::string engine;  // with its version
  std::vector<Configuration> configurations;
  std::int64_t simulated = 0;    // configurations
  std::int64_t simulations = 0;  // runs of the scheduler
};

// Errors: what is wrong with the request as a whole. A configuration that cannot serve is an outcome.
Result<Plan> make_plan(const Asked& asked, const base::Progress& progress);

// Every way there is to try: types, degrees that divide the heads, experts split by width or over the ranks, limits of
// a step. Settings that are given stay as they are. Nothing to try is an error.
Result<std::vector<Way>> ways(const Asked& asked);

// What a load is compared by: price per hour, else devices; the bound of the energy; what the limits leave.
Objectives objectives_of(const Asked& asked, const Configuration& configuration, const Load& load, bool longest);
std::optional<double> price_of(const Asked& asked, const Configuration& configuration, const Load& load);
// Output tokens per second: as offered, since replicas run out of requests at the end of a short workload; where
// clients wait for their answers, as served.
double tokens_per_s(const Asked& asked, const Load& load);
// Joules of an output token if every device drew its power limit all the time; nothing where the limit is not known.
std::optional<double> energy_per_token(const Asked& asked, const Configuration& configuration, const Load& load);

// Why nothing meets the limits, in sentences; empty where something does.
std::vector<std::string> obstacles(const Asked& asked, const Plan& plan);

}  // namespace llmprof::predict::plan
