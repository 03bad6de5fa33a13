#pragma once
// What a comparison needs of a run: measures, stages and parts with their uncertainty, per step. Small, and kept in
// named baselines, so that a run can be compared with after it is gone.

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "analyze/diff/estimate.h"
#include "analyze/summary.h"
#include "base/json_fwd.h"
#include "base/progress.h"

namespace llmprof::analyze {

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
  std::vector<KernelUse> kernels;      // most time first
};

struct StageDigest {
  std::string name, quantity;  // what a sample is: "TTFT", "TPOT", "step time"
  std::int64_t steps = 0;
  Estimate ns;                                       // of a sample: the median, which a slow first step leaves alone
  double mean_ns = 0;                                // of a sample
  bool ranges = false;                               // ranges name its modules; else they are told from shapes
  double kernels = 0, kernel_ns = 0, estimated = 0;  // per step; share of kernel_ns that is estimated
  std::optional<double> batch, context, tokens;      // means per step
  std::optional<double> flops, bytes, floor_ns, sm_clock_hz;  // per step
  std::vector<std::pair<std::string, double>>
      terms;  // of the waterfall, ns per sample; known ones that are not kernels
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
};

// `summary` is that of the run; its derived tables are in use.
// The sections of a summary that digest_of reads.
inline const std::vector<Section> kDigestSections = {Section::kParts,   Section::kGpu,    Section::kCost,
                                                     Section::kHost,    Section::kMemory, Section::kTelemetry,
                                                     Section::kCounters};

Result<Digest> digest_of(const trace::Run& run, const Summary& summary);

base::Json to_json(const Digest& digest);
Result<Digest> digest_from_json(const base::Json& json, std::string_view where);

const StageDigest* find_stage(const Digest& digest, std::string_view name);
const MeasureDigest* find_measure(const Digest& digest, std::string_view name);
const PartDigest* find_part(const Digest& digest, const PartDigest& like);  // same kind, stage and name

}  // namespace llmprof::analyze
