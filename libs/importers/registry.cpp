// Every format: a folder with an Importer, found by the build, and a line here.
#include <algorithm>
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
  X(kNvidiaSmi)              \
  X(kVllmBench)              \
  X(kSglangBench)            \
  X(kAiperf)                 \
  X(kGenaiPerf)              \
  X(kTrtllmBench)            \
  X(kTrtexec)                \
  X(kLlamaBench)             \
  X(kOtel)

#define LLMPROF_DECLARE(importer) extern const Importer importer;
#define LLMPROF_LIST(importer) &importer,
LLMPROF_IMPORTERS(LLMPROF_DECLARE)

std::span<const Importer* const> importers() {
  static constexpr std::array kAll{LLMPROF_IMPORTERS(LLMPROF_LIST)};
  return kAll;
}

const Importer* find_importer(std::string_view name) {
  const auto found = std::ranges::find(importers(), name, &Importer::name);
  return found == importers().end() ? nullptr : *found;
}

const Importer* sniff(std::string_view head) {
  const auto sure = [&](const Importer* importer) { return importer->sniff(head); };
  const Importer* surest = *std::ranges::max_element(importers(), {}, sure);  // the first of equals
  return sure(surest) > 0 ? surest : nullptr;
}

}  // namespace llmprof::importers
