#include <fmt/format.h>

#include "base/human.h"
#include "base/json.h"
#include "base/text_table.h"
#include "report/gpu.h"
#include "report/imported.h"

namespace llmprof::report {
namespace {

using base::Align;
using base::Json;
using base::maybe;
using base::text_or_null;
using base::TextTable;

std::string stall_cell(const analyze::CountedKernel& kernel) {
  if (kernel.stalls.empty() || kernel.stalls.front().warps <= 0) return "-";
  return fmt::format("{} {}", kernel.stalls.front().reason, base::three_digits(kernel.stalls.front().warps));
}

bool only_counted(const Page& page) {
  for (const analyze::SourceFile& source : page.summary.imported.sources) {
    if (source.format != "ncu") return false;
  }
  return is_imported(page);
}

std::string ratio_cell(const std::optional<double>& value) { return value ? fmt::format("{:.1f}", *value) : "-"; }

// Only where such counters were read: most sets do not have them.
std::string access_table(const Page& page) {
  const std::vector<analyze::CountedKernel>& all = page.summary.imported.counted;
  TextTable table({{"kernel", Align::kLeft, true},
                   {"sectors/load"},
                   {"sectors/store"},
                   {"shared %"},
                   {"conflicts %"},
                   {"local"},
                   {"local %"}});
  for (std::size_t i = 0; i < std::min(all.size(), page.top); ++i) {
    const analyze::CountedKernel& k = all[i];
    if (!k.sectors_per_load && !k.sectors_per_store && !k.bank_conflicts && !k.local_share) continue;
    table.add({short_kernel_name(k.name), ratio_cell(k.sectors_per_load), ratio_cell(k.sectors_per_store),
               percent_cell(k.shared_busy), percent_cell(k.bank_conflicts),
               k.local_bytes ? base::human_bytes(*k.local_bytes) : "-", percent_cell(k.local_share)});
  }
  if (table.rows() == 0) return "";
  return "\n" + table.render(kWidth) +
         wrapped(
             "sectors/load: sectors of 32 bytes that one load of a warp asks for: 4 is ideal for 4 bytes a thread, "
             "16 for 16 bytes; 32 is the most. shared %: cycles that shared memory was busy; conflicts %: of its "
             "wavefronts, those that bank conflicts cost. local: bytes of spilled registers and of arrays of "
             "threads; local %: of all sectors asked of L1.");
}

}  // namespace

std::string counter_table(const Page& page, const Style& style) {
  const std::vector<analyze::CountedKernel>& all = page.summary.imported.counted;
  if (all.empty() || !page.stage.empty()) return "";
  TextTable roofs({{"kernel", Align::kLeft, true},
                   {"launches"},
                   {"time"},
                   {"DRAM"},
                   {"GB/s"},
                   {"FLOPs"},
                   {"GFLOP/s"},
                   {"FLOP/B"},
                   {"bound", Align::kLeft},
                   {"roof %"}});
  TextTable use(
      {{"kernel", Align::kLeft, true}, {"occupancy %"}, {"L2 hit %"}, {"tensor %"}, {"most stalls", Align::kLeft}});
  for (std::size_t i = 0; i < std::min(all.size(), page.top); ++i) {
    const analyze::CountedKernel& k = all[i];
    roofs.add({short_kernel_name(k.name), std::to_string(k.launches), k.time_ns > 0 ? time_cell(k.time_ns) : "-",
               k.dram_bytes ? base::human_bytes(*k.dram_bytes) : "-", giga_cell(k.bytes_per_s), amount_cell(k.flops),
               giga_cell(k.flops_per_s), k.intensity ? base::three_digits(*k.intensity) : "-",
               k.bound.empty() ? "-" : k.bound, percent_cell(k.of_roof)});
    use.add({short_kernel_name(k.name), percent_cell(k.occupancy), percent_cell(k.l2_hits), percent_cell(k.tensor_busy),
             stall_cell(k)});
  }
  std::string out = style.heading("Kernels by hardware counters") + roofs.render(kWidth) + "\n" + use.render(kWidth) +
                    access_table(page);
  if (all.size() > page.top) out += fmt::format("  {} more kernels; --top shows more.\n", all.size() - page.top);
  if (only_counted(page))
    out +=
        wrapped("There is no timeline: each kernel was run alone and repeated, and stands in the order of profiling.");
  return out +
         wrapped(
             "FLOPs: counted, of tensor and plain cores; DRAM: bytes read and written. roof %: least time at the "
             "roofs of the device, of the time it "
             "took. occupancy %: active warps, of those that fit; tensor %: cycles of the tensor cores. Means are "
             "weighted by time. most stalls: warps "
             "that waited for that reason at each issue. `llmprof export -t roofline-csv` has every launch.");
}

Json counters_json(const Page& page) {
  Json out = Json::array();
  for (const analyze::CountedKernel& k : page.summary.imported.counted) {
    Json stalls = Json::object();
    for (const auto& stall : k.stalls) stalls[stall.reason] = stall.warps;
    out.push_back({{"name", k.name},
                   {"launches", k.launches},
                   {"time_ns", k.time_ns > 0 ? Json(k.time_ns) : Json()},
                   {"flops", maybe(k.flops)},
                   {"tensor_flops", maybe(k.tensor_flops)},
                   {"dram_bytes", maybe(k.dram_bytes)},
                   {"flops_per_s", maybe(k.flops_per_s)},
                   {"bytes_per_s", maybe(k.bytes_per_s)},
                   {"intensity", maybe(k.intensity)},
                   {"type", text_or_null(k.type)},
                   {"bound", text_or_null(k.bound)},
                   {"of_roof", maybe(k.of_roof)},
                   {"occupancy", maybe(k.occupancy)},
                   {"l2_hits", maybe(k.l2_hits)},
                   {"tensor_busy", maybe(k.tensor_busy)},
                   {"sectors_per_load", maybe(k.sectors_per_load)},
                   {"sectors_per_store", maybe(k.sectors_per_store)},
                   {"bytes_per_load_sector", maybe(k.bytes_per_load_sector)},
                   {"shared_busy", maybe(k.shared_busy)},
                   {"bank_conflicts", maybe(k.bank_conflicts)},
                   {"local_bytes", maybe(k.local_bytes)},
                   {"local_share", maybe(k.local_share)},
                   {"stalled_warps", std::move(stalls)}});
  }
  return out;
}

}  // namespace llmprof::report
