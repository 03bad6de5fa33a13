#pragma once
#include <string>

#include "analyze/measures/measures.h"

namespace llmprof::report {

// A SELECT that lists the rows of the run which a measure was made from (llmprof query); "" where no table has them.
std::string rows_behind(const analyze::Measure& measure);

}  // namespace llmprof::report
