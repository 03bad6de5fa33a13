#include "hw/doctor.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <sys/auxv.h>

#include <algorithm>

#include "base/file.h"
#include "base/human.h"
#include "hw/device.h"
#include "hw/doctor_checks.h"
#include "hw/library_probe.h"
#include "hw/peaks.h"
#include "hw/redact.h"

namespace llmprof::hw {
namespace {

constexpr const char* kReinstall = "reinstall llmprof, or set LLMPROF_LIBDIR to the folder of its libraries";

std::string duckdb_version(void* handle) {
  const auto get = reinterpret_cast<const char* (*)()>(::dlsym(handle, "duckdb_library_version"));
  return get != nullptr ? get() : "version unknown";
}

Finding check_library(const std::string& check, const std::string& path, std::string (*ask)(void*)) {
  if (!base::is_file(path)) return {check, Status::kFail, path + " is missing", kReinstall};
  const LibraryProbe probe = probe_library(path, ask);
  if (!probe.loaded) return {check, Status::kFail, probe.detail, kReinstall};
  return {check, Status::kOk, probe.detail.empty() ? "loads" : probe.detail, ""};
}

Finding check_injection_variables(const SystemFiles& files) {
  std::string found;
  const auto add = [&](const std::string& text) { found += (found.empty() ? "" : ", ") + text; };
  for (const char* name : {"LD_PRELOAD", "LD_AUDIT", "CUDA_INJECTION64_PATH", "NVTX_INJECTION64_PATH"}) {
    const std::string value = variable(files, name);
    if (!value.empty()) add(fmt::format("{}={}", name, redact_text(value)));
  }
  if (const std::string line = files.line("etc/ld.so.preload"); !line.empty()) add("/etc/ld.so.preload: " + line);
  if (found.empty()) return {"other injections", Status::kOk, "none", ""};
  return {"other injections", Status::kWarn, found,
          "kept and reported by record; unset them if the program then misbehaves"};
}

Finding check_secure_execution() {
  if (::getauxval(AT_SECURE) == 0) {
    return {"secure execution", Status::kOk, "off; setuid programs still run without injection", ""};
  }
  return {"secure execution", Status::kWarn, "llmprof itself runs with raised privileges",
          "remove its setuid bit or file capabilities"};
}

Finding check_peaks(const SystemFiles& files) {
  const std::vector<Peak> peaks = cached_peaks(probe_cpu(files.path("")));
  if (peaks.empty())
    return {"cpu peaks", Status::kAbsent, "not measured yet", "record measures them once, or: llmprof roofline"};
  std::string found;
  for (const Peak& peak : peaks) {
    if (!principal(peak)) continue;
    found +=
        fmt::format("{}{} {}", found.empty() ? "" : ", ", peak.type, base::human_rate(peak.value, peak.unit.c_str()));
  }
  if (!measured_while_busy(peaks)) return {"cpu peaks", Status::kOk, found, ""};
  return {"cpu peaks", Status::kWarn, found + "; measured on a busy machine",
          "the next record on an idle machine measures again, or: llmprof roofline"};
}

}  // namespace

std::string_view name_of(Status status) {
  switch (status) {
    case Status::kOk:
      return "ok";
    case Status::kWarn:
      return "warn";
    case Status::kFail:
      return "fail";
    case Status::kAbsent:
      return "absent";
  }
  return "";
}

std::vector<Finding> examine(const DoctorInput& input) {
  const SystemFiles files(input.root);
  return {
      check_library("collector", input.library_folder + "/libllmprof_inject.so", nullptr),
      check_library("blas hook", input.library_folder + "/libllmprof_blas.so", nullptr),
      check_library("duckdb", input.library_folder + "/libduckdb.so", duckdb_version),
      check_folder(input.folder),
      check_disk(input.folder),
      check_injection_variables(files),
      check_secure_execution(),
      check_clock(files),
      check_peaks(files),
      check_driver(files),
      check_nvml(),
      check_cupti(files),
      check_counters(files),
      check_perf_events(files),
      check_cpu_stacks(),
      check_python_frames(),
  };
}

bool can_record(const std::vector<Finding>& findings) {
  return std::none_of(findings.begin(), findings.end(),
                      [](const Finding& finding) { return finding.status == Status::kFail; });
}

}  // namespace llmprof::hw
