#include <fmt/format.h>

#include "base/human.h"
#include "report/gpu.h"
#include "report/imported.h"

namespace llmprof::report {
namespace {

using base::Json;

bool only_counted(const Page& page) {
  for (const analyze::SourceFile& source : page.summary.imported.sources) {
    if (source.format != "ncu") return false;
  }
  return is_imported(page);
}

// Only where such counters were read: most sets do not have them.
std::string access_table(const Page& page, const TableText& tables, const Json& kernels) {
  Json rows = Json::array();
  for (std::size_t i = 0; i < std::min(kernels.size(), page.top); ++i) {
    const Json& k = kernels[i];
    const auto known = [&](const char* key) { return !k[key].is_null(); };
    if (known("sectors_per_load") || known("sectors_per_store") || known("bank_conflicts") || known("local_share"))
      rows.push_back(k);
  }
  if (rows.empty()) return "";
  return "\n" + tables.rows("counters[]#access", rows) + tables.notes("counters[]#access");
}

}  // namespace

std::string counter_table(const Page& page, const Style& style, const TableText& tables) {
  Json kernels = tables.report()["counters"];
  if (kernels.empty() || !page.stage.empty()) return "";
  for (std::size_t i = 0; i < kernels.size(); ++i) {
    const auto& stalls = page.summary.imported.counted[i].stalls;
    if (stalls.empty() || stalls.front().warps <= 0)
      kernels[i]["most_stalls"] = nullptr;
    else
      kernels[i]["most_stalls"] = fmt::format("{} {}", stalls.front().reason, base::three_digits(stalls.front().warps));
  }
  const std::size_t shown_rows = std::min(kernels.size(), page.top);
  const std::size_t left = kernels.size() - shown_rows;
  Json top = Json::array();
  for (std::size_t i = 0; i < shown_rows; ++i) top.push_back(kernels[i]);
  std::string out = style.heading(tables.title("counters[]")) + tables.rows("counters[]#roofs", top) + "\n" +
                    tables.rows("counters[]#use", top) + access_table(page, tables, kernels);
  if (left > 0) out += fmt::format("  {} more kernels; --top shows more.\n", left);
  if (only_counted(page))
    out +=
        wrapped("There is no timeline: each kernel was run alone and repeated, and stands in the order of profiling.");
  return out + tables.notes("counters[]");
}

}  // namespace llmprof::report
