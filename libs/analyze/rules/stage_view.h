#pragma once
// A stage as rules look at it: its time in this run, and the terms of its waterfall scaled to all of its steps.

#include <optional>
#include <string_view>
#include <vector>

#include "analyze/rules/rule.h"

namespace llmprof::analyze {

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
void add_idle_causes(const Summary& summary, const StageView& view, std::vector<Evidence>& evidence);
// Of the time with nothing launched, by stack samples: what is none of the launching of kernels (compilation, garbage
// collection, …). 0 where there are too few samples to tell.
double other_work_share(const Summary& summary, std::string_view stage);
inline constexpr std::int64_t kEnoughSamples = 10;

// What a finding about kernels says where launches hide all that it would save; "" they do not.
std::string hidden_by_launches(const StageView& view);

}  // namespace llmprof::analyze
