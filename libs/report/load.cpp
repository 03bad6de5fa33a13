#include "report/load.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/human.h"
#include "base/text_table.h"
#include "report/layout.h"
#include "report/table.h"

namespace llmprof::report {
namespace {

using base::human_ns;
using base::human_percent;
using base::Json;
using load::LoadDocument;
using load::PointRow;
using load::SeriesDocument;

constexpr std::string_view kLoad = "llmprof.load", kSeries = "llmprof.load_series";

std::string slo_words(const load::SloRow& slo) {
  std::string text;
  const auto part = [&](std::string_view name, const std::optional<double>& limit_ns) {
    if (limit_ns) text += fmt::format("{}{} {}", text.empty() ? "" : ", ", name, human_ns(*limit_ns));
  };
  part("TTFT", slo.ttft_ns), part("TPOT", slo.tpot_ns), part("E2E", slo.e2e_ns);
  return text;
}

Flags flags_of(const LoadDocument& d) {
  Flags flags;
  if (!slo_words(d.slo).empty()) flags.insert("slo");
  if (d.client.capped > 0) flags.insert("queued");
  if (std::ranges::any_of(d.latency, [](const auto& row) { return row.metric == "TTFT any"; })) flags.insert("any");
  return flags;
}

std::string head(const LoadDocument& d, const Style& style) {
  std::string out = style.heading(fmt::format("Load on {}: {}, {}", d.url, d.model, d.endpoint)).substr(1);
  out += wrapped(fmt::format("{}; {}{}.", d.workload, d.schedule, d.stream ? "" : "; answers in one piece (--no-stream)"));
  if (d.interrupted) out += style.warning(wrapped(fmt::format("Interrupted: {} of the load were not sent.", counted(d.not_sent, "request"))));
  if (!d.interrupted && d.not_sent > 0)
    out += wrapped(fmt::format("--duration ended it: {} were not sent.", counted(d.not_sent, "request")));
  if (!d.client.kept)
    out += style.warning(wrapped(fmt::format(
        "THE CLIENT DID NOT KEEP UP: {}. These figures are not the server's alone; use a lower rate or a faster client.",
        d.client.why)));
  return out;
}

std::string counted_line(const LoadDocument& d) {
  std::string out;
  for (const load::CountedRow& row : d.counted) {
    const std::string how = row.counted_by == "usage"       ? "by the server's usage"
                            : row.counted_by == "token ids" ? "by the server's token ids"
                            : row.counted_by == "tokenizer" ? "by the tokenizer"
                            : row.counted_by == "messages"  ? "as messages with text, which may hold several"
                                                            : "unknown: no usage, no stream, no --tokenizer";
    out += fmt::format("{}{}{}", out.empty() ? "Output tokens counted " : "; ", how,
                       d.counted.size() > 1 ? fmt::format(" ({})", counted(row.requests, "request")) : "");
  }
  return out.empty() ? "" : wrapped(out + ".");
}

std::string steady_line(const LoadDocument& d) {
  if (!d.steady_why.empty()) return wrapped(fmt::format("No steady part: {}.", d.steady_why));
  return wrapped(fmt::format("Steady: the longest part in which concurrency stays at {} of its peak or above.",
                             human_percent(d.steady_level)));
}

std::string client_lines(const LoadDocument& d) {
  const load::ClientRow& c = d.client;
  std::string out = wrapped(fmt::format(
      "Client: sent p50 {}, p99 {}, at most {} behind its schedule; answers read at most {} late (p99); {} of a core, {} in the "
      "busiest second; {}.",
      human_ns(c.lag_p50_ns), human_ns(c.lag_p99_ns), human_ns(c.lag_most_ns), human_ns(c.read_lag_p99_ns),
      human_percent(c.cpu_share), human_percent(c.cpu_share_most), d.library));
  if (c.capped > 0)
    out += wrapped(fmt::format("{} had to wait in the client for --max-outstanding: p50 {}, p99 {}, at most {}.",
                               counted(c.capped, "request"), human_ns(c.cap_wait_p50_ns), human_ns(c.cap_wait_p99_ns),
                               human_ns(c.cap_wait_most_ns)));
  if (d.warm_up > 0) {
    out += wrapped(fmt::format("{} of warm-up are left out{}.", counted(d.warm_up, "request"),
                               d.warm_up_failed > 0 ? fmt::format("; {} of them failed", d.warm_up_failed) : ""));
  }
  return out;
}

bool all_finished(const LoadDocument& d) {
  return std::ranges::all_of(d.statuses, [](const load::StatusRow& row) { return row.status == "finished"; });
}

Json statuses_of(const LoadDocument& d) {
  Json rows = Json::array();
  for (load::StatusRow row : d.statuses) {
    row.example = base::printable(row.example);
    rows.push_back(base::fields_json(row));
  }
  return rows;
}

// A curve of the plot: y of each point that has one, by its throughput.
Series curve(const SeriesDocument& d, std::string name, std::optional<double> PointRow::*y) {
  Series out{.name = std::move(name), .points = {}};
  for (const PointRow& point : d.points) {
    if (point.*y) out.points.push_back({point.output_tokens_per_s, *(point.*y) * 1e-9});
  }
  return out;
}

}  // namespace

std::string to_text(const LoadPage& page, bool colour) {
  const LoadDocument& d = page.document;
  const Style style{colour};
  const Json all = base::fields_json(d);
  const TableText tables(all, flags_of(d));
  const auto section = [&](std::string_view key, const Json& rows) {
    const std::string path = fmt::format("{}.{}[]", kLoad, key);
    return rows.empty() ? "" : style.heading(tables.title(path)) + tables.rows(path, rows) + tables.notes(path);
  };
  std::string out = head(d, style);
  if (!all_finished(d)) out += section("statuses", statuses_of(d));
  out += section("spans", all["spans"]) + steady_line(d) + counted_line(d);
  if (const std::string slo = slo_words(d.slo); !slo.empty()) out += wrapped(fmt::format("Good: {}.", slo));
  out += section("latency", all["latency"]) + "\n" + client_lines(d);
  for (const std::string& note : d.notes) out += wrapped("- " + note + ".");
  return out + (d.run.empty() ? "" : wrapped(fmt::format("Written to {}: llmprof report {}", d.run, d.run)));
}

void to_json(const LoadPage& page, Json& out) { out.update(described_fields(kLoad, page.document)); }

Plot load_plot(const SeriesDocument& d) {
  Plot plot{.title = fmt::format("{} on {}", d.model, d.url), .note = d.workload};
  plot.x = {.title = "output tokens/s", .unit = "", .spans = {0.0}};
  plot.y = {.title = "latency", .unit = "s", .scale = Scale::kLog10};
  plot.series = {curve(d, "TTFT p50", &PointRow::ttft_p50_ns), curve(d, "TTFT p99", &PointRow::ttft_p99_ns),
                 curve(d, "TPOT p50", &PointRow::tpot_p50_ns), curve(d, "TPOT p99", &PointRow::tpot_p99_ns)};
  std::erase_if(plot.series, [](const Series& series) { return series.points.empty(); });
  const auto limit = [&](const std::optional<double>& ns, std::string_view name) {
    if (ns) plot.guides.push_back({Guide::At::kY, *ns * 1e-9, fmt::format("{} limit", name)});
  };
  limit(d.slo.ttft_ns, "TTFT"), limit(d.slo.tpot_ns, "TPOT");
  for (const PointRow& point : d.points) {
    if (point.ttft_p99_ns) plot.labels.push_back({point.output_tokens_per_s, *point.ttft_p99_ns * 1e-9, point.label});
  }
  return plot;
}

std::string to_text(const LoadSeriesPage& page, bool colour) {
  const SeriesDocument& d = page.document;
  const Style style{colour};
  const Json all = base::fields_json(d);
  Flags flags;
  if (!slo_words(d.slo).empty()) flags.insert("slo");
  const TableText tables(all, flags);
  std::string out = style.heading(fmt::format("Loads on {}: {}, {}", d.url, d.model, d.endpoint)).substr(1);
  out += wrapped(d.workload + " a point.");
  if (d.share && flags.contains("slo"))
    out += wrapped(fmt::format("Good: {}, for {} of the requests.", slo_words(d.slo), human_percent(*d.share)));
  const std::string path = fmt::format("{}.points[]", kSeries);
  out += style.heading(tables.title(path)) + tables.rows(path, all["points"]) + tables.notes(path);
  if (d.points.size() > 1) out += "\n" + plot_text(load_plot(d), page.canvas);
  if (!d.why.empty())
    out += "\n" + wrapped(d.rate ? fmt::format("The highest rate within the limits: {} requests/s. {}.", base::three_digits(*d.rate), d.why)
                                 : fmt::format("No rate was within the limits. {}.", d.why));
  if (d.interrupted) out += style.warning(wrapped("Interrupted."));
  for (const std::string& note : d.notes) out += wrapped("- " + note + ".");
  return out;
}

void to_json(const LoadSeriesPage& page, Json& out) { out.update(described_fields(kSeries, page.document)); }

}  // namespace llmprof::report
