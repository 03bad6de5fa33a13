// Every format, the surest signatures first. Adding one: a folder with an Importer, a line here, a test, a fuzz target.
#include <array>

#include "importers/importer.h"

namespace llmprof::importers {

extern const Importer kNsysReport, kNsysSqlite, kMemorySnapshot, kCublasLog, kNcuCsv, kTelemetryCsv, kNvidiaSmi,
    kProton, kKineto, kNcclLog, kKeyAverages, kPrometheus;

std::span<const Importer* const> importers() {
  static constexpr std::array kAll{&kKineto,         &kNsysSqlite, &kNsysReport,   &kNcuCsv,
                                   &kCublasLog,      &kNcclLog,    &kProton,       &kKeyAverages,
                                   &kMemorySnapshot, &kPrometheus, &kTelemetryCsv, &kNvidiaSmi};
  return kAll;
}

const Importer* find_importer(std::string_view name) {
  for (const Importer* importer : importers()) {
    if (importer->name == name) return importer;
  }
  return nullptr;
}

const Importer* sniff(std::string_view head) {
  const Importer* best = nullptr;
  int surest = 0;
  for (const Importer* importer : importers()) {
    const int sure = importer->sniff(head);
    if (sure > surest) best = importer, surest = sure;
  }
  return best;
}

}  // namespace llmprof::importers
