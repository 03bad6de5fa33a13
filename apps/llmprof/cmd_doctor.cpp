// llmprof doctor: what this machine permits, and what to do about the rest.

#include <fmt/format.h>

#include <algorithm>

#include "base/json.h"
#include "base/text_table.h"
#include "hw/doctor.h"
#include "record/launch/injection.h"
#include "verb.h"

namespace llmprof::app {
namespace doctor_verb {
namespace {

constexpr Option kOptions[] = {{"--json", "", "", "", "", "print the findings as JSON"}};

// "gpu driver, nvml: install it": one line per remedy, in the order of the checks.
std::string remedies_of(const std::vector<hw::Finding>& findings) {
  std::vector<std::pair<std::string, std::string>> lines;  // remedy, checks
  for (const hw::Finding& finding : findings) {
    if (finding.remedy.empty()) continue;
    const auto same =
        std::find_if(lines.begin(), lines.end(), [&](const auto& line) { return line.first == finding.remedy; });
    if (same == lines.end()) {
      lines.emplace_back(finding.remedy, finding.check);
    } else {
      same->second += ", " + finding.check;
    }
  }
  std::string text;
  for (const auto& [remedy, checks] : lines) text += fmt::format("  {}:\n    {}\n", checks, remedy);
  return text;
}

std::string text_of(const std::vector<hw::Finding>& findings) {
  base::TextTable table(
      {{"check", base::Align::kLeft}, {"status", base::Align::kLeft}, {"found", base::Align::kLeft, true}});
  for (const hw::Finding& finding : findings) {
    table.add({finding.check, std::string(hw::name_of(finding.status)), finding.found});
  }
  const std::string remedies = remedies_of(findings);
  return table.render(100, 0) + (remedies.empty() ? "" : "\nwhat to do:\n" + remedies) +
         (hw::can_record(findings) ? "\nrecording will work\n" : "\nrecording will NOT work\n");
}

base::Json json_of(const std::vector<hw::Finding>& findings) {
  base::Json json = json_head("llmprof.doctor");
  json["can_record"] = hw::can_record(findings);
  json["checks"] = base::Json::array();
  for (const hw::Finding& finding : findings) {
    json["checks"].push_back({{"check", finding.check},
                              {"status", hw::name_of(finding.status)},
                              {"found", finding.found},
                              {"remedy", finding.remedy}});
  }
  return json;
}

Result<int> run(const Arguments& arguments) {
  const std::vector<hw::Finding> findings = hw::examine({.library_folder = record::library_folder()});
  print(arguments.on("--json") ? base::to_text(json_of(findings)) : text_of(findings));
  return hw::can_record(findings) ? 0 : 2;
}

}  // namespace
}  // namespace doctor_verb

extern const Verb kDoctor;
const Verb kDoctor{"doctor", "check what this machine permits", doctor_verb::kOptions, {}, false, doctor_verb::run};

}  // namespace llmprof::app
