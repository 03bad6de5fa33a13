// Prometheus' text format 0.0.4 and OpenMetrics, of any exporter; several scrapes may follow each other.
#include "importers/importer.h"

#include "importers/input.h"
#include "importers/lines.h"
#include "importers/prometheus/scrape.h"

namespace llmprof::importers {
namespace prometheus {
namespace {

constexpr std::string_view kHint = "curl -s http://HOST:PORT/metrics > FILE writes what can be read";

bool is_html(std::string_view head) {
  const std::size_t begin = head.find_first_not_of(" \t\r\n");
  return begin != std::string_view::npos && head[begin] == '<';
}

std::string title_of(std::string_view html) {
  const std::size_t begin = html.find("<title>"), end = html.find("</title>");
  if (begin == std::string_view::npos || end == std::string_view::npos || end < begin) return "";
  std::string title(html.substr(begin + 7, std::min<std::size_t>(end - begin - 7, 80)));
  for (char& c : title) {
    if (static_cast<unsigned char>(c) < 0x20) c = ' ';
  }
  return title;
}

int sniff(std::string_view head) {
  int lines = 0, comments = 0, samples = 0;
  while (!head.empty() && lines < 40) {
    const std::size_t end = head.find('\n');
    std::string_view line = head.substr(0, end);
    if (line.ends_with('\r')) line.remove_suffix(1);
    const bool whole = end != std::string_view::npos || lines == 0;
    head = end == std::string_view::npos ? std::string_view() : head.substr(end + 1);
    if (line.empty() || !whole) continue;
    ++lines;
    SampleLine sample;
    if (line.starts_with("# ") && !parse_comment(line).keyword.empty()) {
      ++comments;
    } else if (!line.starts_with('#') && parse_sample(line, sample) == nullptr) {
      ++samples;
    }
  }
  if (comments > 0 && samples > 0) return 90;
  return samples > 0 && 2 * samples > lines ? 30 : 0;
}

Result<void> parse(Input& input, Sink& sink) {
  LLMPROF_LET(const std::string_view head, input.head());
  if (is_html(head)) {
    const std::string title = title_of(head);
    return Error{ErrorCode::kCorruptInput,
                 "line 1: an HTML page, no metrics" + (title.empty() ? "" : " (\"" + title + "\")"),
                 std::string(kHint)};
  }
  sink.set_facts({.tool = "Prometheus text", .command = "", .host = "", .model_config = "", .rank = ""});
  Lines lines(input, sink);
  Scrapes scrapes(sink);
  std::string_view line;
  for (;;) {
    LLMPROF_LET(const bool more, lines.next(line));
    if (!more) break;
    scrapes.line(line, lines.where());
  }
  scrapes.finish();
  if (scrapes.values() == 0) {
    return Error{ErrorCode::kCorruptInput, "line 1: no metric can be read from it", std::string(kHint)};
  }
  return {};
}

}  // namespace
}  // namespace prometheus

extern const Importer kPrometheus;
const Importer kPrometheus{"prometheus", "Prometheus text", Role::kReadings, prometheus::sniff, prometheus::parse};

}  // namespace llmprof::importers
