// llmprof doctor: what this machine permits, and what to do about the rest.

#include <fmt/format.h>

#include "base/json.h"
#include "base/text_table.h"
#include "hw/doctor.h"
#include "record/injection.h"
#include "verb.h"

namespace llmprof::app {
namespace {

constexpr Option kOptions[] = {{"--json", "", "", "", "", "print the findings as JSON"}};

std::string text_of(const std::vector<hw::Finding>& findings) {
  base::TextTable table({{"check", base::Align::kLeft}, {"status", base::Align::kLeft}, {"found", base::Align::kLeft, true}});
  std::string remedies;
  for (const hw::Finding& finding : findings) {
    table.add({finding.check, std::string(hw::name_of(finding.status)), finding.found});
    if (!finding.remedy.empty()) remedies += fmt::format("  {}: {}\n", finding.check, finding.remedy);
  }
  std::string text = table.render(100, 0);
  if (!remedies.empty()) text += "\nwhat to do:\n" + remedies;
  return text + (hw::can_record(findings) ? "\nrecording will work\n" : "\nrecording will NOT work\n");
}

base::Json json_of(const std::vector<hw::Finding>& findings) {
  base::Json json = json_head("llmprof.doctor");
  json["can_record"] = hw::can_record(findings);
  json["checks"] = base::Json::array();
  for (const hw::Finding& finding : findings) {
    json["checks"].push_back({{"check", finding.check}, {"status", hw::name_of(finding.status)}, {"found", finding.found}, {"remedy", finding.remedy}});
  }
  return json;
}

int run(const Arguments& arguments) {
  const std::vector<hw::Finding> findings = hw::examine({.library_folder = record::library_folder()});
  print(arguments.on("--json") ? base::to_text(json_of(findings)) : text_of(findings));
  return hw::can_record(findings) ? 0 : 2;
}

}  // namespace

extern const Verb kDoctor;
const Verb kDoctor{"doctor", "check what this machine permits", kOptions, {}, false, run};

}  // namespace llmprof::app
