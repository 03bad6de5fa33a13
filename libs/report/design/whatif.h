#pragma once
// What `llmprof whatif` says, as terminal text and JSON.

#include <string>
#include <vector>

#include "analyze/design/whatif.h"
#include "report/design/page.h"

namespace llmprof::report {

struct WhatIfPage {
  std::string subject;
  std::vector<std::string> changes, notes;
  analyze::design::Design before, after;
  std::vector<analyze::design::ExpectedStage> expected;  // empty: there is no run
  std::vector<analyze::design::Gradient> gradients;
  std::vector<analyze::design::Cliff> cliffs;
};
std::string to_text(const WhatIfPage& page, bool colour);
void to_json(const WhatIfPage& page, base::Json& out);

}  // namespace llmprof::report
