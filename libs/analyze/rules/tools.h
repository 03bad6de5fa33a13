#pragma once
// The vocabulary of the rules: stages as they look at them, words and outcomes.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analyze/rules/rule.h"
#include "base/human.h"
#include "base/strings.h"
#include "trace/run.h"

namespace llmprof::analyze {

using base::human_bytes, base::human_count, base::human_ns, base::human_percent, base::human_rate;
using trace::sql_literal;

inline double ratio(double part, double whole) { return part / whole; }  // of integers, too

RuleResult not_found(std::string why);
RuleResult not_applicable(std::string why);

// Bytes that the steps of its stage moved by hardware counters, where they were counted.
void add_counted_bytes(const Summary& summary, Finding& finding);

const Stage* stage_named(const Summary& summary, std::string_view name);
bool is_preparation(std::string_view stage);  // load, warm-up: not what a model is run for
// Share of a stage's time with a kernel executing, over its devices; nullopt if it has no time.
std::optional<double> busy_share(const Stage& stage);
// "3 kernels", "1 kernel"
std::string count_of(double count, std::string_view plural);
// "decode step", "decode steps"; "step" of a stage that has no better name than steps.
std::string step_word(std::string_view stage, std::string_view word = "step");
std::string shape_text(const ProductKernel& product);    // "[1, 4096] x [4096, 4096]"
std::string product_rows(const ProductKernel& product);  // SELECT: its kernels
std::string short_kernel(std::string_view name);         // without namespaces and template arguments

// Stages whose passes end with the choice of tokens: prefill, decode, mixed, draft, verify, generation.
bool makes_tokens(std::string_view stage);
bool is_training(std::string_view stage);  // forward, backward, optimizer, training

// A stage as rules look at it: its time in this run, and the terms of its waterfall scaled to all of its steps.
struct StageView {
  const Stage* stage = nullptr;
  const Waterfall* waterfall = nullptr;  // null: none
  double total_ns = 0;                   // measured per sample x steps; without a waterfall the stage's time
  double steps = 0;

  // Of total_ns; nullopt if the waterfall does not know it. Terms of several classes are added up.
  std::optional<double> term(std::string_view name) const;
  double idle_launching_ns() const;  // the device idles: nothing is launched, or it has been just now
  double idle_launching() const { return total_ns > 0 ? idle_launching_ns() / total_ns : 0; }
  double busy_ns() const;  // of total_ns, with kernels of the stage executing on a device
  // The host is late so often that shorter kernels would only wait longer for it.
  bool held_by_launches() const { return idle_launching() >= 0.25; }
  std::string per_step(double ns) const;  // "1.03 ms per step"
};

StageView view_of(const Summary& summary, const Stage& stage);
// Stages that repeat and took time, in their order.
std::vector<StageView> steady_stages(const Summary& summary);

// Where the host was, and what it did, while the device had nothing to do; nothing where that is not known. Steps in
// which the program warms up are left out.
void add_idle_causes(const Summary& summary, Finding& finding);
std::string idle_sample_rows(const std::string& stage);  // SELECT: the stack samples of that time
// Of the time with nothing launched, by stack samples: what is none of the launching of kernels (compilation, garbage
// collection, …). 0 where there are too few samples to tell.
double other_work_share(const Summary& summary, std::string_view stage);
inline constexpr std::int64_t kEnoughSamples = 10;

// What a finding about kernels says where launches hide all that it would save; "" they do not.
std::string hidden_by_launches(const StageView& view);

// The operators of a stage that read weights: what they took, what they must move, how fast they moved it.
struct WeightRead {
  std::string op;
  double time_ns = 0, weight_bytes = 0, bytes = 0, flops = 0;  // over all steps
  double of_floor = 0;   // the longer of bytes / bandwidth and FLOPs / peak, of its time
  double bandwidth = 0;  // bytes / time, of the peak
};

// Those with a measured time and a known peak bandwidth, most time first.
std::vector<WeightRead> weight_reads(const RuleInput& run, const StageView& view);

}  // namespace llmprof::analyze
