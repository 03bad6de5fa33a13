#pragma once
// What `llmprof plan` says, as rows by the names that its JSON has (libs/analyze/tables/plan.md describes each).

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "predict/plan/plan.h"

namespace llmprof::predict::plan {

struct SloRow {
  std::optional<double> ttft_ns, tpot_ns, e2e_ns;
  double share = 0;
};

struct SearchedRow {
  std::int64_t configurations = 0, simulated = 0, simulations = 0;
  std::int64_t do_not_fit = 0, refused = 0, too_slow = 0, too_many_devices = 0, meet = 0, may_meet = 0;
};

// One number of replicas of a configuration.
struct PlanRow {
  std::string device, short_name, dtype;
  std::int64_t tensor = 1, expert = 1, replicas = 1, devices = 1;
  std::int64_t max_num_seqs = 0, max_num_batched_tokens = 0;
  bool meets = false, front = false;
  std::optional<double> cost_per_hour, cost_per_mtoken, energy_bound_j;  // energy: of 1000 output tokens
  double good_share = 0, good_share_longest = 0;
  double of_slo = 0;
  std::optional<double> of_slo_longest;  // nothing: beyond all numbers
  std::string_view limit;
  double ttft_ns = 0, tpot_ns = 0, e2e_ns = 0;
  std::optional<double> ttft_longest_ns, tpot_longest_ns, e2e_longest_ns;
  bool steady = true;
  std::optional<double> highest_rate;
  bool rate_may_be_higher = false;
  double busy_share = 0, kv_peak_share = 0;
  double measured = 0, interpolated = 0, extrapolated = 0, roof = 0, assumed = 0;  // shares of predicted time
  double step_most = 1;
  std::string label, split, limits, ttft_text, tpot_text, e2e_text, slo_text, rate_text;
};

// A configuration that serves with no number of replicas.
struct LeftOutRow {
  std::string device, dtype, outcome, why;
  std::int64_t tensor = 1, expert = 1, max_num_seqs = 0, max_num_batched_tokens = 0;
  double weights_bytes = 0, granted_bytes = 0;
  std::optional<double> ttft_alone_ns, tpot_alone_ns;
};

struct DeviceRow {
  std::string device;
  double memory_bytes = 0;
  std::optional<double> bandwidth, power_w, price;
  std::string power_source, link;
};

struct PlanDocument {
  std::string model, engine, workload;
  std::optional<double> rate;
  SloRow slo;
  SearchedRow searched;
  std::vector<PlanRow> front, may, configurations;
  std::vector<LeftOutRow> left_out;
  std::vector<DeviceRow> devices;
  std::vector<std::string> obstacles, notes;
};

PlanDocument document_of(const Asked& asked, const Plan& plan);

}  // namespace llmprof::predict::plan
