// Every format that a run can be written as, in the order --help lists them. Adding one: a file with an Exporter, a
// line here, a test with a reader that is not ours.
#include <algorithm>
#include <array>

#include "exporters/exporter.h"

namespace llmprof::exporters {

extern const Exporter kPerfetto, kChromeJson, kSpeedscope, kFolded, kPprof, kCsv, kOpsCsv, kNvmlCsv, kJson, kParquet,
    kSqlite, kKeyAverages, kRooflineCsv;

std::span<const Exporter* const> exporters() {
  static constexpr std::array kAll{&kPerfetto, &kChromeJson,  &kSpeedscope, &kFolded, &kPprof,
                                   &kCsv,      &kOpsCsv,      &kNvmlCsv,    &kJson,   &kParquet,
                                   &kSqlite,   &kKeyAverages, &kRooflineCsv};
  return kAll;
}

const Exporter* find_exporter(std::string_view name) {
  const auto found = std::ranges::find(exporters(), name, &Exporter::name);
  return found == exporters().end() ? nullptr : *found;
}

}  // namespace llmprof::exporters
