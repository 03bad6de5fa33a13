// Reports of NVIDIA's profilers in their own binary forms, which only NVIDIA's programs read: the answer is the command
// that makes something readable of them.
#include <fmt/format.h>

#include "importers/importer.h"
#include "importers/input.h"

namespace llmprof::importers {
namespace report_file {
namespace {

constexpr std::string_view kNsysMagic = "NVIDIA Tegra Profiler";  // .nsys-rep, formerly .qdrep
constexpr std::string_view kNcuMagic("NVR\0", 4);                 // .ncu-rep

int sniff(std::string_view head) { return head.starts_with(kNsysMagic) || head.starts_with(kNcuMagic) ? 100 : 0; }

std::string without_ending(const std::string& name) {
  const std::size_t slash = name.find_last_of('/'), dot = name.find_last_of('.');
  return dot == std::string::npos || (slash != std::string::npos && dot < slash) ? name : name.substr(0, dot);
}

// As a word for a shell.
std::string word(const std::string& text) {
  constexpr std::string_view kPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./-+:,=@";
  if (!text.empty() && text.find_first_not_of(kPlain) == std::string::npos) return text;
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

Result<void> parse(Input& input, Sink&) {
  LLMPROF_LET(const std::string_view head, input.head());
  const std::string& name = input.name();
  const std::string stem = without_ending(name);
  if (head.starts_with(kNcuMagic))
    return Error{ErrorCode::kUnsupported, "byte 0: a report of Nsight Compute, which only ncu itself can read",
                 fmt::format("make a table of it and import that: ncu --import {} --csv --page raw > {}", word(name),
                             word(stem + ".csv"))};
  const bool stream = name.ends_with(".qdstrm");  // what nsys leaves when it was stopped before writing its report
  const std::string report = stream ? stem + ".nsys-rep" : name;
  const std::string convert = stream ? fmt::format("QdstrmImporter -i {} && ", word(name)) : "";
  return Error{ErrorCode::kUnsupported,
               stream ? "byte 0: an unfinished recording of Nsight Systems"
                      : "byte 0: a report of Nsight Systems, which only nsys itself can read",
               fmt::format("export it and import that: {}nsys export --type sqlite --output {} {}", convert,
                           word(stem + ".sqlite"), word(report))};
}

}  // namespace
}  // namespace report_file

extern const Importer kNsysReport;
const Importer kNsysReport{"nsys-rep", "Nsight Systems or Nsight Compute report", Role::kTrace, report_file::sniff,
                           report_file::parse};

}  // namespace llmprof::importers
