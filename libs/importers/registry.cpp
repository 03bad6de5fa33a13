// Every format: a folder with an Importer, found by the build, and a line here.
#include <array>

#include "importers/importer.h"

namespace llmprof::importers {

#define LLMPROF_IMPORTERS(X) \
  X(kKineto)                 \
  X(kNsysSqlite)             \
  X(kNsysReport)             \
  X(kNcuCsv)                 \
  X(kCublasLog)              \
  X(kNcclLog)                \
  X(kProton)                 \
  X(kKeyAverages)            \
  X(kMemorySnapshot)         \
  X(kPrometheus)             \
  X(kTelemetryCsv)           \
  X(kNvidiaSmi)

#define LLMPROF_DECLARE(importer) extern const Importer importer;
#define LLMPROF_LIST(importer) &importer,
LLMPROF_IMPORTERS(LLMPROF_DECLARE)

std::span<const Importer* const> importers() {
  static constexpr std::array kAll{LLMPROF_IMPORTERS(LLMPROF_LIST)};
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
