#pragma once
// For tests: a section of a page drawn as the report draws it.

#include <concepts>

#include "report/sections.h"
#include "report/table.h"

namespace llmprof::report {

template <class Section>
requires std::invocable<Section, const Page&, const Style&, const TableText&> std::string drawn(const Section& section,
                                                                                                const Page& page) {
  const base::Json report = report_json(page);
  return section(page, Style{}, TableText(report, flags_of(page), page.top));
}

inline std::string drawn(std::string_view path, const Page& page) {
  return drawn([&](const Page&, const Style& style, const TableText& tables) { return tables.section(path, style); },
               page);
}

}  // namespace llmprof::report
