#pragma once
// A model as a design: what it must cost in parameters, memory, FLOPs, bytes and time, from its config alone, under
// given conditions and on a given device. Everything a page shows is computed here.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analyze/design/stage.h"
#include "model/checkpoint/checkpoint.h"

namespace llmprof::analyze::design {

struct Options {
  std::int64_t batch = 1;
  std::int64_t prompt = 0;   // new tokens of a prefill, or of a training sequence; 0: kUsualPrompt or the model's most
  std::int64_t context = 0;  // of a decode step, the new token included; 0: the prompt
  std::vector<model::Sequences> mixed;  // a pass of both kinds; may be empty
  bool train = false;                   // forward, backward and optimizer instead of prefill and decode
  model::Recompute recompute = model::Recompute::kNone;
  model::Parallel parallel;
  model::Latent latent = model::Latent::kLeast;
};
inline constexpr std::int64_t kUsualPrompt = 1024;

struct Training {
  model::TrainingMemory memory;
  std::optional<bool> fits;
  double flops = 0;             // of the model in one step, on one device
  double recomputed_flops = 0;  // executed again, not part of them
  std::optional<double> step_ns, tokens_per_s;
};

// The times of inference at the roof: no run on this device can be faster.
struct Speeds {
  std::optional<double> ttft_ns, tpot_ns;
  std::optional<double> tokens_per_s;               // of all sequences in decode
  std::optional<double> tokens_per_s_per_sequence;  // 1 / TPOT
};

// What is analysed.
struct Subject {
  model::Config config;
  std::string origin;                           // "built-in name llama-3.2-1b", a path
  std::vector<std::string> notes;               // of whoever opened it
  std::optional<model::Checkpoint> checkpoint;  // where weights lie beside the config
};

struct Design {
  model::Config config;  // of the whole model
  std::string origin;
  std::optional<model::Checkpoint> checkpoint;
  Options options;  // with the defaults filled in
  Roof roof;
  std::int64_t devices = 1;
  std::int64_t groups = 1;  // of devices with a batch of their own

  std::vector<std::string> architecture;  // sentences
  std::string types;
  std::string weights_source;  // "analytic, from the config", "exact, from the headers of 2 safetensors files"
  std::int64_t parameters = 0, active_parameters = 0;
  std::vector<model::PartParameters> parts;
  Memory memory;
  std::vector<Stage> stages;  // in the order of a run
  std::optional<Training> training;
  Speeds speeds;  // empty with train

  std::vector<UsedPeak> peaks;  // of the products, each type of arithmetic once
  std::optional<UsedPeak> bandwidth;
  // To be read before the numbers.
  std::vector<std::string> caveats;  // the numbers are bounds, and why
  std::vector<std::string> notes;    // what they rest on

  const Stage* stage(std::string_view name) const;  // nullptr if there is none
};

Result<Design> make_design(const Subject& subject, const Options& options, const Roof& roof);

// With the defaults of the model filled in; an error names the option that is out of bounds.
Result<Options> complete(Options options, const model::Config& config);
model::Conditions conditions_of(const Options& options, const Roof& roof);

// Two designs side by side.

struct DiffRow {
  std::string part;       // "model", "memory", "prefill", …
  std::string name;       // "KV cache per token"
  std::string_view unit;  // "", "B", "FLOP", "ns", "tokens/s", "FLOP/B"
  std::optional<double> a, b;
  std::optional<double> ratio() const { return a && b && *a > 0 ? std::optional(*b / *a) : std::nullopt; }
};

// Quantities that neither of them knows are left out.
std::vector<DiffRow> diff(const Design& a, const Design& b);

// Model-level efficiency from one measured number: tokens/s, TTFT or TPOT. No profile is needed for it.

struct Measurement {
  std::optional<double> tokens_per_s;  // of all sequences: in decode, or of training
  std::optional<double> ttft_ns, tpot_ns;
};

struct Reached {
  std::string stage;                        // "prefill", "decode", "training step"
  std::string from;                         // "--measured-tps 1200"
  double time_ns = 0;                       // of one pass
  double flops_per_s = 0, bytes_per_s = 0;  // on each device
  std::optional<double> mfu;                // model FLOPs / time / peak: sum over types of FLOPs / peak, by the time
  std::optional<double> hfu;                // training: with what is computed again
  std::optional<double> mbu;                // bytes that must move / time / bandwidth
  std::optional<double> floor_ns;           // of tokens/s: with a batch in every stage of a pipeline
  std::optional<double> floor_share;        // floor / time
  std::string why;                          // of what is unknown, or above 1
};

Result<std::vector<Reached>> reached(const Design& design, const Measurement& measurement);

}  // namespace llmprof::analyze::design
