#pragma once
// The single checks of the doctor, grouped by file.

#include "hw/doctor.h"
#include "hw/system_files.h"

namespace llmprof::hw {

// doctor_gpu.cpp
Finding check_driver(const SystemFiles& files);
Finding check_nvml();
Finding check_cupti(const SystemFiles& files);
Finding check_counters(const SystemFiles& files);

// doctor_host.cpp
Finding check_cpu_stacks();
Finding check_python_frames();

// doctor_machine.cpp
Finding check_perf_events(const SystemFiles& files);
Finding check_clock(const SystemFiles& files);
Finding check_folder(const std::string& folder);
Finding check_disk(const std::string& folder);

bool is_privileged(const SystemFiles& files);                           // CAP_SYS_ADMIN or CAP_PERFMON in effect
std::string variable(const SystemFiles& files, std::string_view name);  // of this process, "" if unset

}  // namespace llmprof::hw
