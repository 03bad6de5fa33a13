#pragma once
// What `llmprof whatif` says, as terminal text and JSON; its sweep also as a plot.

#include <optional>
#include <string>
#include <vector>

#include "analyze/design/cliffs.h"
#include "analyze/design/whatif.h"
#include "analyze/design/whatif_sweep.h"
#include "predict/serving_change.h"
#include "report/design/page.h"

namespace llmprof::report {

struct WhatIfPage {
  std::string subject;
  std::vector<std::string> changes;  // empty: gradients and cliffs of what is there
  std::vector<std::string> notes;
  analyze::design::Design before, after;
  std::vector<analyze::design::ExpectedStage> expected;  // empty: there is no run
  std::optional<std::pair<analyze::design::Priced, analyze::design::Priced>> predicted;
  std::vector<analyze::design::Gradient> gradients;
  std::vector<analyze::design::Cliff> cliffs;
};
std::string to_text(const WhatIfPage& page, bool colour);
void to_json(const WhatIfPage& page, base::Json& out);

// What the lines of a sweep's plot are.
enum class Drawn : std::uint8_t { kTtft, kTpot, kTokensPerS, kMemory };

struct WhatIfSweepPage {
  std::string subject;
  std::string held;  // "batch 8, prompt 1024"
  std::vector<std::string> changes, notes;
  std::string device;
  double device_bytes = 0;  // 0: not known
  analyze::design::ChangeSweep sweep;
  Drawn drawn = Drawn::kTpot;
  std::optional<PlotPoint> measured;  // of a run, where the last axis is a size of its steps
  bool with_plot = true;              // in the text
};
std::string to_text(const WhatIfSweepPage& page, bool colour);
void to_json(const WhatIfSweepPage& page, base::Json& out);
Plot to_plot(const WhatIfSweepPage& page);

struct WhatIfServingPage {
  predict::ServingChange change;
};
std::string to_text(const WhatIfServingPage& page, bool colour);
void to_json(const WhatIfServingPage& page, base::Json& out);

}  // namespace llmprof::report
