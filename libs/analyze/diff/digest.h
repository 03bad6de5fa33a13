#pragma once
// What a comparison needs of a run: measures, stages and parts with their uncertainty, per step. Small, and kept in
// named baselines, so that a run can be compared with after it is gone.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "analyze/summary.h"
#include "base/json_fwd.h"
#include "base/progress.h"

namespace llmprof::analyze {

// Means with their uncertainty, and what they say about two sides. Samples of successive steps are correlated, so the
// error of a mean comes from means of batches, not from single samples. Pure functions.

// A number and how well it is known.
struct Estimate {
  double value = 0;
  std::optional<double> error;  // standard error; 0: counted, not measured; nullopt: nothing tells it
  double freedom = 0;           // degrees of freedom of `error`
  std::int64_t samples = 0;     // steps, or runs, that it is made from
};

inline constexpr std::size_t kLeastBatches = 8;  // fewer do not tell an error
inline constexpr std::size_t kMostBatches = 32;

// The mean of batches of (nearly) equal weight in order of time. Neighbours are joined, down to kLeastBatches, as long
// as they are correlated; what correlation is left makes the error larger.
Estimate mean_of_batches(std::vector<double> batches);
// The same of samples in order of time, any number of them.
Estimate mean_of_samples(std::span<const double> samples);
// The q-quantile (as quantile_disc) of samples in order of time, its error from the quantiles of batches. Without error
// where a batch would hold too few samples for that quantile.
Estimate quantile_of_samples(std::span<const double> samples, double q);

// Of repeated runs: the mean, its error from the spread between runs or from that within them, whichever is larger.
Estimate mean_of_runs(std::span<const Estimate> runs);

struct Change {
  std::optional<double> ratio;      // after / before - 1; nullopt where before is 0
  std::optional<double> low, high;  // 95 % interval of it
  std::optional<double> p;          // two-sided: that it is chance; 0 where both are counted and differ
};
// Welch's test on the logarithms. A side of one run among repeats takes over the spread of the other.
Change change_between(std::span<const Estimate> before, std::span<const Estimate> after);

// Student's t: the two-sided probability of |t| or more, and the t that 95 % lie within.
double student_p(double t, double freedom);
double student_t95(double freedom);

// ---- what is compared

struct MeasureDigest {
  std::string name, unit, better, of, why;  // "decode.tpot_p50"; better: "lower", "higher", "neither"
  std::optional<Estimate> value;            // in base units
};

struct KernelUse {  // of a part, per step
  std::string name;
  double executions = 0, ns = 0;
};

struct PartDigest {
  std::string kind;  // "module", "operator", "shape"
  std::string name, stage;
  // Per step. Of a module with those inside it; of an operator without them. On a GPU the time of its kernels.
  Estimate ns;
  double calls = 0;                    // kernels or BLAS calls per step; of a module with those inside it
  double estimated = 0;                // share of the time in graph launches that were not recorded node by node
  std::optional<double> flops, bytes;  // per step, by the model
  std::string bound;                   // "compute", "memory", "unknown"
  std::vector<KernelUse> kernels;      // most time first
};

struct TermDigest {  // of the waterfall, per sample
  std::string name;
  double ns = 0;
};

struct StageDigest {
  std::string name, quantity;  // what a sample is: "TTFT", "TPOT", "step time"
  std::int64_t steps = 0;
  Estimate ns;                                       // of a sample: the median, which a slow first step leaves alone
  double mean_ns = 0;                                // of a sample
  bool ranges = false;                               // ranges name its modules; else they are told from shapes
  double kernels = 0, kernel_ns = 0, estimated = 0;  // per step; share of kernel_ns that is estimated
  std::optional<double> batch, context, tokens;      // means per step; tokens of all sequences together
  std::optional<double> flops, bytes, floor_ns, sm_clock_hz;  // per step
  std::vector<TermDigest> terms;                              // known ones that are not kernels
  std::optional<double> flops_shapes;                         // per step, of its matrix products
  std::string bound;                                          // "compute", "memory", "unknown"
  double time_ns = 0;                                         // of all steps
  bool on_cpu = false;                                        // the CPU computed: it cannot idle while it works
  double confidence = 1;                                      // that these steps are what the name says
};

// What a run was made with and on: what has to agree before times are those of the same work.
struct WorkFact {
  std::string kind;             // "model", "device", "setup"
  std::string name;             // "parameters", "driver"
  std::string text;             // as it is printed: "1.24 G", "580.159.04"
  std::optional<double> value;  // of what is a number
};

struct Digest {
  std::string name, folder, created, command;
  std::string model;               // "llama, 1.24 G parameters, bfloat16"; "" unknown
  std::string device;              // "NVIDIA H200"
  std::vector<std::string> notes;  // what limits a comparison: losses, nothing executed
  std::int64_t steps = 0, kernels = 0;
  std::vector<MeasureDigest> measures;
  std::vector<StageDigest> stages;
  std::vector<PartDigest> parts;
  std::vector<WorkFact> facts;  // known ones; empty in baselines of earlier versions
};

// `summary` is that of the run; its derived tables are in use.
// The sections of a summary that digest_of reads.
inline const std::vector<Section> kDigestSections = {Section::kParts,    Section::kGpu,    Section::kCost,
                                                     Section::kHost,     Section::kMemory, Section::kTelemetry,
                                                     Section::kCounters, Section::kSteps,  Section::kRequests};

std::vector<WorkFact> facts_of(const trace::RunInfo& info, const Summary& summary);

Result<Digest> digest_of(const trace::Run& run, const Summary& summary);

base::Json to_json(const Digest& digest);
Result<Digest> digest_from_json(const base::Json& json, std::string_view where);

const StageDigest* find_stage(const Digest& digest, std::string_view name);
const MeasureDigest* find_measure(const Digest& digest, std::string_view name);
const PartDigest* find_part(const Digest& digest, const PartDigest& like);  // same kind, stage and name
const WorkFact* find_fact(const Digest& digest, std::string_view name);

// A training step as a whole: forward, backward and optimizer, and what lies between them. It stands among the stages.
inline constexpr std::string_view kTrainingStep = "training step";

}  // namespace llmprof::analyze
