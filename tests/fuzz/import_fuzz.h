#pragma once
// What every importer owes its caller, whatever the text: it ends, names are UTF-8, rows make sense, and what is
// refused is refused with a place and a hint.

#include <cmath>

#include "fuzz.h"
#include "importers/importer.h"
#include "importers/input.h"
#include "importers/testing_sink.h"
#include "importers/text.h"

namespace llmprof::fuzz {

inline void check_rows(const importers::MemorySink& sink) {
  for (const auto& row : sink.rows<trace::KernelRow>())
    require(row.begin_ns <= row.end_ns && row.device_id > 0 && row.thread_id > 0);
  for (const auto& row : sink.rows<trace::CounterRow>()) require(std::isfinite(row.value) && row.scope_id > 0);
  for (const auto& row : sink.rows<trace::GemmRow>())
    require(row.m >= 0 && row.n >= 0 && row.k >= 0 && row.batch >= 0 && row.thread_id > 0);
  for (const auto& row : sink.rows<trace::SummaryRow>()) {
    require(importers::is_utf8(sink.text(row.name)) && row.kind.id != 0);
    for (const auto& value : {row.self_cpu_ns, row.cpu_ns, row.self_device_ns, row.device_ns, row.flops})
      require(!value || std::isfinite(*value));
  }
  for (const auto& row : sink.rows<trace::ReportedFigureRow>()) {
    require(std::isfinite(row.value) && row.experiment_id > 0 && row.statistic.id != 0);
    require(importers::is_utf8(sink.text(row.metric)) && importers::is_utf8(sink.text(row.definition)));
  }
  for (const auto& row : sink.rows<trace::RequestRow>()) {
    require(row.source.id != 0 && row.prompt_tokens >= 0 && row.output_tokens >= 0);
    require(!row.sent_ns || !row.first_token_ns || *row.first_token_ns >= *row.sent_ns);
  }
}

inline void check_importer(std::string_view format, std::string_view text) {
  const importers::Importer* importer = importers::find_importer(format);
  importer->sniff(text.substr(0, 64 << 10));
  importers::MemorySink sink;
  importers::Input input = importers::Input::of_text("input", std::string(text));
  const Result<void> result = importer->parse(input, sink);
  sink.flush();
  if (!result) {
    const std::string& message = result.error().message;
    require(message.starts_with("line ") || message.starts_with("byte ") || text.starts_with("\x1f\x8b") ||
            text.starts_with("\x28\xb5"));
    return;
  }
  check_rows(sink);
}

}  // namespace llmprof::fuzz
