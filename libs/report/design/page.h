#pragma once
// A model's design, laid out as terminal text, JSON, CSV and plots. Computes nothing.

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "analyze/design/design.h"
#include "analyze/design/sweep.h"
#include "report/plot.h"
#include "report/table.h"

namespace llmprof::report {

struct DesignPage {
  analyze::design::Design design;
  std::vector<analyze::design::Reached> reached;  // may be empty
  bool per_op = true, per_layer = false;          // tables of operators, of layers
  std::size_t top = 15;                           // rows per table of the terminal text
};

struct SweepPage {
  analyze::design::Design design;  // with the options that are held fixed
  analyze::design::Sweep sweep;
};

struct DesignDiffPage {
  analyze::design::Design a, b;
  std::vector<analyze::design::DiffRow> rows;
};

// Lines of at most line_width() columns.
std::string to_text(const DesignPage& page, bool colour);
std::string to_text(const SweepPage& page, bool colour);
std::string to_text(const DesignDiffPage& page, bool colour);

// Adds the payload behind what `out` already holds. docs/format/json-model.md describes every key.
void to_json(const DesignPage& page, base::Json& out);
void to_json(const SweepPage& page, base::Json& out);
void to_json(const DesignDiffPage& page, base::Json& out);

// With a header line; what is unknown is an empty cell.
std::string to_csv(const DesignPage& page);  // layers if per_layer, else operators
std::string to_csv(const SweepPage& page);
std::string to_csv(const DesignDiffPage& page);

// The last axis to the right, a line for each value of the others: tokens/s over the batch, TPOT over the context, TTFT
// over the prompt; memory where there are no floors.
Plot to_plot(const SweepPage& page);

// What these pages begin with.
std::string head_section(const analyze::design::Design& design, const Style& style);
base::Json head_facts(const analyze::design::Design& design);
// Which peaks the floors and percentages rest on; "" if there are none.
std::string peaks_sentence(const analyze::design::Design& design);
std::string model_name(const analyze::design::Design& design);

}  // namespace llmprof::report
