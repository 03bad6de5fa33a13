#include "report/environment_line.h"

#include <array>

#include "base/json.h"

namespace llmprof::report {

// The card (libs/hw/environment.h) may come from another version of llmprof: what is not there is not said.
std::string environment_line(std::string_view card_json) {
  const Result<base::Json> card = base::parse_json(card_json, "environment");
  if (!card || !card->is_object()) return "";
  struct Field {
    const char *section, *key, *label;
  };
  static constexpr std::array<Field, 8> kFields{{{"system", "distribution", ""},
                                                 {"system", "kernel", "kernel "},
                                                 {"system", "hypervisor", "virtual machine "},
                                                 {"system", "container", "container "},
                                                 {"cpu", "cores", "cores "},
                                                 {"cpu", "threads_per_core", "threads per core "},
                                                 {"cpu", "quota_cpus", "CPU quota "},
                                                 {"cpu", "governor", "governor "}}};
  std::string out;
  for (const Field& field : kFields) {
    const auto section = card->find(field.section);
    if (section == card->end() || !section->is_object() || !section->contains(field.key)) continue;
    const base::Json& value = (*section)[field.key];
    if (value.is_null()) continue;
    out += (out.empty() ? "" : ", ") + std::string(field.label) +
           (value.is_string() ? value.get<std::string>() : base::to_line(value));
  }
  return out;
}

}  // namespace llmprof::report
