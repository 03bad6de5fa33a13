#pragma once
// What `llmprof predict` says of a serving, for terminal and JSON.

#include <string>
#include <vector>

#include "base/json_fwd.h"
#include "predict/document.h"

namespace llmprof::report {

struct ServingPage {
  predict::ServingDocument document;
  serving::EngineRules rules;
  bool full = false;  // rules and the course over time, too
};
std::string to_text(const ServingPage& page, bool colour);
void to_json(const ServingPage& page, base::Json& out);

struct StepsPage {
  predict::StepsDocument document;
};
std::string to_text(const StepsPage& page, bool colour);
void to_json(const StepsPage& page, base::Json& out);

struct BacktestPage {
  std::vector<predict::ServingBacktest> servings;
  std::vector<predict::StepBacktest> steps;
  std::string saved;  // where the steps were written to; "" nowhere
};
std::string to_text(const BacktestPage& page, bool colour);
void to_json(const BacktestPage& page, base::Json& out);

struct CalibrationPage {
  predict::CalibrationDocument document;
};
std::string to_text(const CalibrationPage& page, bool colour);
void to_json(const CalibrationPage& page, base::Json& out);

}  // namespace llmprof::report
