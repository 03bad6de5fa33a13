#include "report/explain_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

namespace llmprof::report {
namespace {

// {} is the stage.
struct Behind {
  std::string_view names;  // of measures, between spaces
  std::string_view sql;
};

constexpr std::string_view kSteps =
    "SELECT number, begin_ns, end_ns, batch, tokens, context FROM step WHERE stage = '{}' ORDER BY begin_ns";
constexpr std::string_view kReadings =
    "SELECT ts_ns, metric, value FROM telemetry, step WHERE stage = '{}' AND ts_ns BETWEEN begin_ns AND end_ns ORDER "
    "BY "
    "ts_ns";

constexpr std::array<Behind, 8> kOfStage{{
    {" time share_of_wall steps tokens tokens_per_s step_mean step_p50 step_p90 step_p99 ttft tpot_p50 tpot_p90 "
     "tpot_p99 "
     "joules_per_token ",
     kSteps},
    {" busy idle ", "SELECT number, begin_ns, end_ns, stage_busy_ns FROM step WHERE stage = '{}' ORDER BY begin_ns"},
    {" kernels_per_step kernel_time kernel_time_per_step estimated ",
     "SELECT name, count(*) AS kernels, sum(end_ns - begin_ns) AS ns FROM kernel JOIN attribution ON kernel_id = "
     "kernel.id "
     "WHERE stage = '{}' GROUP BY name ORDER BY ns DESC"},
    {" graphs_per_step ", "SELECT * FROM launch_place WHERE stage = '{}'"},
    {" mfu mbu flops bytes flops_per_s bytes_per_s intensity floor of_floor ",
     "SELECT o.* FROM model_op o WHERE pass_id IN (SELECT pass_id FROM step WHERE stage = '{}')"},
    {" flops_shapes ",
     "SELECT g.m, g.n, g.k, g.batch, count(*) AS calls FROM gemm g JOIN attribution USING (kernel_id) WHERE stage = "
     "'{}' "
     "GROUP BY ALL ORDER BY calls DESC"},
    {" between_steps gaps queued waits copies ",
     "SELECT t.* FROM step_time t JOIN step ON step_id = step.id WHERE stage = '{}'"},
    {" energy power sm_clock memory_clock slow_clock temperature sm_active sm_occupancy tensor_active dram_active ",
     kReadings},
}};

constexpr std::array<Behind, 7> kOfRun{{
    {" in_stages ", "SELECT stage, begin_ns, end_ns FROM step ORDER BY begin_ns"},
    {" gpu_time placed estimated kernels ",
     "SELECT name, count(*) AS kernels, sum(end_ns - begin_ns) AS ns FROM kernel GROUP BY name ORDER BY ns DESC"},
    {" losses ", "SELECT * FROM loss"},
    {" device_memory_peak ", "SELECT * FROM allocation ORDER BY bytes DESC"},
    {" host_memory_peak host_cpu_time ", "SELECT * FROM process_usage ORDER BY ts_ns"},
    {" energy power highest_power ", "SELECT * FROM telemetry WHERE metric IN ('power_w', 'energy_j') ORDER BY ts_ns"},
    {" recording_delay ", "SELECT * FROM collector_cost"},
}};

template <std::size_t kCount>
std::string_view find(const std::array<Behind, kCount>& all, std::string_view name) {
  const std::string word = fmt::format(" {} ", name);
  const auto found = std::find_if(all.begin(), all.end(),
                                  [&](const Behind& each) { return each.names.find(word) != each.names.npos; });
  return found == all.end() ? std::string_view() : found->sql;
}

}  // namespace

std::string rows_behind(const analyze::Measure& measure) {
  std::string sql(measure.scope == "run" ? find(kOfRun, measure.kind->name) : find(kOfStage, measure.kind->name));
  std::string stage;
  for (const char c : measure.scope) stage += c == '\'' ? "''" : std::string(1, c);
  if (const std::size_t place = sql.find("{}"); place != std::string::npos) sql.replace(place, 2, stage);
  return sql;
}

}  // namespace llmprof::report
