#include "report/imported.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/human.h"
#include "base/json.h"
#include "base/text_table.h"
#include "report/tables.h"

namespace llmprof::report {
namespace {

using base::Align;
using base::Json;
using base::maybe;
using base::text_or_null;
using base::TextTable;

std::string more_line(std::size_t all, std::size_t top, std::string_view what) {
  return all > top ? fmt::format("  {} more {}; --top shows more.\n", all - top, what) : "";
}

std::string share_cell(std::int64_t part, std::int64_t all) {
  return all > 0 ? percent_cell(static_cast<double>(part) / static_cast<double>(all)) : "-";
}

std::string ns_cell(const std::optional<double>& ns) { return ns ? base::human_ns(*ns) : "-"; }
std::string bytes_cell(const std::optional<double>& bytes) {
  if (!bytes) return "-";
  return *bytes < 0 ? "-" + base::human_bytes(-*bytes) : base::human_bytes(*bytes);
}

std::string attention_name(const analyze::AttentionShape& a) {
  const std::string_view name = a.function;
  const std::string_view plain = name.starts_with("aten::_")  ? name.substr(7)
                                 : name.starts_with("aten::") ? name.substr(6)
                                                              : name;
  return fmt::format("{}{}", plain, !a.causal ? "" : *a.causal ? ", causal" : ", every pair");
}

std::string attention_shape(const analyze::AttentionShape& a) {
  const std::string heads =
      a.heads == a.kv_heads ? fmt::format("{}", a.heads) : fmt::format("{}/{}", a.heads, a.kv_heads);
  const std::string size =
      a.head_size == a.value_size ? fmt::format("{}", a.head_size) : fmt::format("{}, {}", a.head_size, a.value_size);
  return fmt::format("{} x {} x {}", a.batch, heads, size);
}

}  // namespace

bool is_imported(const Page& page) { return !page.summary.imported.sources.empty(); }

bool has_timeline(const Page& page) {
  const auto timeless = [](const analyze::SourceFile& source) {
    return source.format == "ncu" || source.format == "cublas" || source.format == "nccl" ||
           source.format == "key-averages" || source.format == "proton";
  };
  const auto& sources = page.summary.imported.sources;
  return sources.empty() || !std::ranges::all_of(sources, timeless);
}

std::string source_lines(const Page& page) {
  std::string out;
  for (const analyze::SourceFile& source : page.summary.imported.sources) {
    out += wrapped(fmt::format("Imported from {} ({}{}, {}).", source.file, source.format,
                               source.tool.empty() ? "" : ", " + source.tool,
                               base::human_bytes(static_cast<double>(source.bytes))));
  }
  return out;
}

std::string framework_table(const Page& page, const Style& style) {
  const analyze::Imported& all = page.summary.imported;
  if (all.framework_ops.empty() || !page.stage.empty()) return "";
  TextTable table({{"framework operator", Align::kLeft, true},
                   {"calls"},
                   {"GPU self"},
                   {"GPU %"},
                   {"GPU total"},
                   {"host self"},
                   {"host %"},
                   {"host total"}});
  for (std::size_t i = 0; i < std::min(all.framework_ops.size(), page.top); ++i) {
    const analyze::FrameworkOp& op = all.framework_ops[i];
    table.add({op.name, std::to_string(op.calls), op.self_device_ns > 0 ? time_cell(op.self_device_ns) : "-",
               op.self_device_ns > 0 ? share_cell(op.self_device_ns, all.framework_device_ns) : "-",
               op.device_ns > 0 ? time_cell(op.device_ns) : "-", time_cell(op.self_host_ns),
               share_cell(op.self_host_ns, all.framework_host_ns), time_cell(op.host_ns)});
  }
  return style.heading(all.framework_device_ns > 0 ? "Framework operators by GPU time"
                                                   : "Framework operators by host time") +
         table.render(kWidth) + more_line(all.framework_ops.size(), page.top, "operators") +
         wrapped(fmt::format("self: without the operators inside. GPU: kernels and copies by where they were launched, "
                             "{} of all operators "
                             "together; host: {}.",
                             base::human_ns(static_cast<double>(all.framework_device_ns)),
                             base::human_ns(static_cast<double>(all.framework_host_ns))));
}

std::string attention_table(const Page& page, const Style& style) {
  TextTable table({{"attention", Align::kLeft, true},
                   {"shape", Align::kLeft},
                   {"queries"},
                   {"keys"},
                   {"calls"},
                   {"GPU time"},
                   {"FLOPs"},
                   {"GFLOP/s"},
                   {"peak %"},
                   {"stage", Align::kLeft}});
  std::size_t count = 0;
  for (const analyze::AttentionShape& a : page.summary.imported.attentions) {
    if (!shown(page, a.stage) || ++count > page.top) continue;
    table.add({attention_name(a), attention_shape(a), std::to_string(a.queries), std::to_string(a.keys),
               std::to_string(a.calls), a.time_ns > 0 ? time_cell(a.time_ns) : "-", amount_cell(a.flops),
               giga_cell(a.flops_per_s), percent_cell(a.of_peak), a.stage.empty() ? "(none)" : a.stage});
  }
  if (count == 0) return "";
  return style.heading("Attention by time") + table.render(kWidth) + more_line(count, page.top, "shapes") +
         wrapped(
             "shape: sequences x heads (of queries/of keys and values) x their size. FLOPs: the two products of "
             "attention; causal unless the operator says that it is not. peak %: of the device's peak FLOP/s of "
             "the type.");
}

namespace {

// What the tool says of all rows, also of those it did not print; else the rows themselves, each time counted once:
// ranges lie over the operators in them, and operators repeat the device time of their kernels.
std::string totals_sum(const std::vector<analyze::Total>& totals) {
  double device_ns = 0, host_ns = 0, kernel_ns = 0;
  for (const analyze::Total& total : totals) {
    if (total.kind == "total") {
      return fmt::format("In all, also in rows that were not printed: {} on the GPU, {} on the host.",
                         ns_cell(total.self_device_ns), ns_cell(total.self_cpu_ns));
    }
    if (total.kind == "range") continue;
    host_ns += total.self_cpu_ns.value_or(0);
    (total.kind == "kernel" ? kernel_ns : device_ns) += total.self_device_ns.value_or(0);
  }
  return fmt::format("Self times, added up: {} on the GPU, {} on the host.",
                     base::human_ns(device_ns > 0 ? device_ns : kernel_ns),
                     host_ns > 0 ? base::human_ns(host_ns) : "unknown");
}

}  // namespace

std::string totals_table(const Page& page, const Style& style) {
  const std::vector<analyze::Total>& totals = page.summary.imported.totals;
  if (totals.empty() || !page.stage.empty()) return "";
  TextTable table({{"name", Align::kLeft, true},
                   {"kind", Align::kLeft},
                   {"calls"},
                   {"GPU self"},
                   {"GPU total"},
                   {"host self"},
                   {"host total"},
                   {"GPU memory"},
                   {"FLOPs"}});
  std::size_t count = 0;
  for (const analyze::Total& t : totals) {
    if (t.kind == "total" || ++count > page.top) continue;
    table.add({t.name, t.kind, t.calls ? std::to_string(*t.calls) : "-", ns_cell(t.self_device_ns),
               ns_cell(t.device_ns), ns_cell(t.self_cpu_ns), ns_cell(t.cpu_ns), bytes_cell(t.device_bytes),
               amount_cell(t.flops)});
  }
  return style.heading("Totals as the tool added them up") + table.render(kWidth) + more_line(count, page.top, "rows") +
         wrapped(
             "These are sums: there is no timeline, so no stages, gaps or latencies. GPU memory: allocated less "
             "freed. " +
             totals_sum(totals));
}

Json sources_of_json(const Page& page) {
  Json out = Json::array();
  for (const analyze::SourceFile& s : page.summary.imported.sources) {
    out.push_back({{"file", s.file},
                   {"format", s.format},
                   {"tool", text_or_null(s.tool)},
                   {"bytes", s.bytes},
                   {"clock", text_or_null(s.clock)}});
  }
  return out;
}

Json framework_json(const Page& page) {
  Json out = Json::array();
  for (const analyze::FrameworkOp& op : page.summary.imported.framework_ops) {
    out.push_back({{"name", op.name},
                   {"calls", op.calls},
                   {"host_ns", op.host_ns},
                   {"self_host_ns", op.self_host_ns},
                   {"device_ns", op.device_ns},
                   {"self_device_ns", op.self_device_ns},
                   {"launches", op.launches}});
  }
  return out;
}

Json attention_json(const Page& page) {
  Json out = Json::array();
  for (const analyze::AttentionShape& a : page.summary.imported.attentions) {
    if (!shown(page, a.stage)) continue;
    out.push_back(
        {{"stage", text_or_null(a.stage)},
         {"function", a.function},
         {"type", text_or_null(a.type)},
         {"batch", a.batch},
         {"heads", a.heads},
         {"kv_heads", a.kv_heads},
         {"queries", a.queries},
         {"keys", a.keys},
         {"head_size", a.head_size},
         {"value_size", a.value_size},
         {"causal", maybe(a.causal)},
         {"calls", a.calls},
         {"time_ns", a.time_ns},
         {"flops", a.flops},
         {"flops_per_s", maybe(a.flops_per_s)},
         {"of_peak", maybe(a.of_peak)},
         {"why", a.of_peak ? Json(nullptr) : Json("no time, or no peak FLOP/s is known for this device and type")}});
  }
  return out;
}

Json totals_json(const Page& page) {
  Json out = Json::array();
  for (const analyze::Total& t : page.summary.imported.totals) {
    out.push_back({{"kind", t.kind},
                   {"name", t.name},
                   {"shapes", text_or_null(t.shapes)},
                   {"calls", maybe(t.calls)},
                   {"self_host_ns", maybe(t.self_cpu_ns)},
                   {"host_ns", maybe(t.cpu_ns)},
                   {"self_device_ns", maybe(t.self_device_ns)},
                   {"device_ns", maybe(t.device_ns)},
                   {"host_bytes", maybe(t.cpu_bytes)},
                   {"device_bytes", maybe(t.device_bytes)},
                   {"flops", maybe(t.flops)},
                   {"moved_bytes", maybe(t.moved_bytes)}});
  }
  return out;
}

}  // namespace llmprof::report
