#pragma once
// The sections of the terminal report, and what they share. Every percentage says of what, in the title or below.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "analyze/steps/idle.h"
#include "analyze/summary.h"
#include "base/json_fwd.h"
#include "base/kernel_name.h"
#include "report/layout.h"
#include "report/page.h"
#include "report/table.h"

namespace llmprof::report {

Flags flags_of(const Page& page);                      // what columns and notes of tables ask for
bool shown(const Page& page, std::string_view stage);  // passes the --stage filter

std::string stage_table(const Page& page, const Style& style,
                        const TableText& tables);  // time, steps, tokens, latencies
std::string efficiency_table(const Style& style, const TableText& tables, const Page& page);
std::string operator_tables(const Page& page, const Style& style, const TableText& tables);  // by stage
std::string module_tables(const Page& page, const Style& style, const TableText& tables);
std::string gemm_table(const Page& page, const Style& style, const TableText& tables);

// What a report says about GPUs: how much of their time was attributed, kernels by time, GPU time by source line, time
// that was not recorded, notes.

std::string gpu_coverage(const Page& page);                   // lines for the section Coverage; "" without a GPU
std::string gap_lines(const Page& page, const Style& style);  // what was not recorded, and notes
std::string kernel_table(const Page& page, const Style& style, const TableText& tables);  // "" without a GPU
std::string source_table(const Page& page, const Style& style, const TableText& tables);  // "" unless asked for
std::string estimate_line(const Page& page, std::string_view stage);  // what "~" rests on; "" if nothing is estimated

using base::short_kernel_name;

// Training steps over the run, and the blocks of the model, for terminal and JSON.

std::string step_lines(const Page& page);  // a sparkline for every stage of some steps; "" without any
std::string step_rate(const Page& page);   // tokens/s and MFU of a whole training step; "" without any
std::string training_table(const Page& page, const Style& style, const TableText& tables);  // "" without training steps
std::string block_table(const Page& page, const Style& style);                              // "" without layers

// Idle time of the device and what the host did then, for terminal and JSON.

std::string idle_section(const Page& page, const Style& style);  // "" where no device idled
// "compilation (nvrtc for cuDNN) 48 %, Python 20 %, not on a CPU 12 %": of `total_ns`; "" without enough samples.
std::string works_text(const analyze::StageIdle& idle, double total_ns);

// What hardware counters say of a run (Summary::counters): a few lines of each table, all of them if asked for.

std::string asked_set(const Page& page);  // of counters; "" none
bool has_hardware(const Page& page);      // something was counted, or was to be counted and is said why not
std::string hardware_section(const Page& page, const Style& style);  // "" without counters
base::Json hardware_json(const Page& page);                          // null without counters
std::string hardware_alone(const Page& page, const Style& style,
                           const TableText& tables);  // of --counters: says so where there are none

// What a report says of runs that other tools' files made: the files, operators of the framework, attention, totals.

bool is_imported(const Page& page);
bool only_results(const Page& page);  // requests and figures, nothing of the work behind them

// What a report says of runs that nobody measured (predicted.cpp).
bool is_predicted(const Page& page);
std::string prediction_lines(const Page& page);                       // "" of other runs
std::string predicted_section(const Page& page, const Style& style);  // in place of what was recorded

bool has_timeline(const Page& page);         // false: totals, a log without times, kernels that were run one by one
std::string source_lines(const Page& page);  // the files, first thing of the coverage
std::string framework_table(const Page& page, const Style& style, const TableText& tables);
std::string counter_table(const Page& page, const Style& style, const TableText& tables);
std::string totals_table(const Page& page, const Style& style, const TableText& tables);

// Power, energy, clocks and activity of devices, per stage.

std::string telemetry_section(const Page& page, const Style& style, const TableText& tables);  // "" without readings

// Memory of devices: over time, its peak, and what was there at the peak.

std::string device_memory_section(const Page& page, const Style& style,
                                  const TableText& tables);  // "" where nothing is known

// A framework's allocator: what it held and gave out, fragmentation, stacks at the peak, what was never freed.

std::string allocator_section(const Page& page, const Style& style,
                              const TableText& tables);  // "" where nothing is known

// What an inference server exported: requests, KV cache, latencies, tokens.

std::string requests_section(const Page& page, const Style& style, const TableText& tables);  // "" without requests
std::string requests_block(const Page& page, const Style& style, const TableText& tables);    // of the one screen
std::string metrics_section(const Page& page, const Style& style, const TableText& tables);   // "" where there are none

// Processes and memory as they were seen from outside.

std::string host_section(const Page& page, const Style& style, const TableText& tables);
// Nothing of it tells a model: no kernel, BLAS call, range or training loop. That is no mistake of anybody's.
bool is_plain_program(const Page& page);
// Functions by stage, or of the whole run where it has no stages; and those of Python.
std::string functions_section(const Page& page, const Style& style, const TableText& tables);
inline constexpr std::string_view kNoReadings =
    "No process was read from outside: recorded with --no-host, or too short to be read, or not by llmprof record.";

// The highest of the points in each of `columns` equal parts of their time; as before where there is none.
std::vector<std::int64_t> highest_in_parts(const std::vector<analyze::MemoryPoint>& points, std::size_t columns);

// The functions of a run, from its CPU stack samples, and how well those cover it.

std::string stack_coverage(const Page& page);  // a sentence for the section Coverage; "" if not sampled

std::string sampled_section(const Page& page, const Style& style,
                            const TableText& tables);  // a training loop; "" if there is none

// The life of the program from exec to exit, as one bar and a table whose rows add up to it, and as JSON.

// "" where no process was watched: imported runs.
std::string life_section(const Page& page, const Style& style, const TableText& tables);
std::string life_bar(const Page& page);    // one line of letters and what they stand for; "" as above
std::string exit_words(const Page& page);  // "exit status 0"; "" unknown

// What recording itself cost, and how much of the run was recorded.

std::string cost_line(const Page& page);    // in one sentence
std::string window_line(const Page& page);  // "" if all of the run was recorded
std::string cost_lines(const Page& page, const Style& style);

// What a run ran on, as sentences.

// The environment card in one sentence; "" if the run has none.
std::string environment_line(std::string_view card_json);

// "2 ranks on 2 GPUs: tensor parallel 2. Known by: --parallel tp=2."; "" of a single rank with a whole model.
std::string job_words(const analyze::Summary& summary, bool predicted = false);

}  // namespace llmprof::report
