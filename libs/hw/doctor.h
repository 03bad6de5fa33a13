#pragma once
// What this machine permits: every thing that recording needs or that makes it better, with the remedy when it is not
// so.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "hw/system_files.h"

namespace llmprof::hw {

enum class Status : std::uint8_t {
  kOk,
  kWarn,    // works, with less
  kFail,    // recording will not work
  kAbsent,  // not there, and not needed to record on the CPU
};
std::string_view name_of(Status status);

struct Finding {
  std::string check;  // "duckdb"
  Status status = Status::kOk;
  std::string found;
  std::string remedy;  // "" only when the status is kOk
};

struct DoctorInput {
  std::string root = "/";      // a fake /proc and /sys in tests
  std::string library_folder;  // of llmprof's own libraries
  std::string folder = ".";    // where a run would be written
};

// Starts short-lived child processes; call while this process has one thread.
std::vector<Finding> examine(const DoctorInput& input);
bool can_record(const std::vector<Finding>& findings);

// The single checks: of GPUs, of the stacks of programs, of the machine.
Finding check_driver(const SystemFiles& files);
Finding check_nvml();
Finding check_cupti(const SystemFiles& files);
Finding check_counters(const SystemFiles& files);
Finding check_cpu_stacks();
Finding check_python_frames();
Finding check_perf_events(const SystemFiles& files);
Finding check_clock(const SystemFiles& files);
Finding check_folder(const std::string& folder);
Finding check_disk(const std::string& folder);

bool is_privileged(const SystemFiles& files);                           // CAP_SYS_ADMIN or CAP_PERFMON in effect
std::string variable(const SystemFiles& files, std::string_view name);  // of this process, "" if unset

// Where CUPTI may be, in the order in which it is tried. LLMPROF_CUPTI names the one to take, and no other is then.

std::vector<std::string> cupti_paths(const SystemFiles& files);

}  // namespace llmprof::hw
