#pragma once
// What `llmprof load` says, for terminal and JSON.

#include <string>

#include "base/json_fwd.h"
#include "load/document.h"
#include "report/plot.h"

namespace llmprof::report {

struct LoadPage {
  load::LoadDocument document;
};
std::string to_text(const LoadPage& page, bool colour);
void to_json(const LoadPage& page, base::Json& out);

struct LoadSeriesPage {
  load::SeriesDocument document;
  TextCanvas canvas;
};
std::string to_text(const LoadSeriesPage& page, bool colour);
void to_json(const LoadSeriesPage& page, base::Json& out);

// Throughput against latency: TTFT and TPOT, p50 and p99, over output tokens per second.
Plot load_plot(const load::SeriesDocument& document);

}  // namespace llmprof::report
