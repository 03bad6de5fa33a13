#pragma once
// What a run ran on, as sentences.

#include <string>
#include <string_view>

#include "analyze/summary.h"

namespace llmprof::report {

// The environment card in one sentence; "" if the run has none.
std::string environment_line(std::string_view card_json);

// "2 ranks on 2 GPUs: tensor parallel 2. Known by: --parallel tp=2."; "" of a single rank with a whole model.
std::string job_words(const analyze::Summary& summary);

}  // namespace llmprof::report
