#pragma once
// llmprof whatif MODEL --serving: a workload on an engine, before and after a change.

#include <string>

#include "verb.h"

namespace llmprof::app {

bool asks_for_serving(const Arguments& arguments);
Result<std::string> whatif_serving_page(const Arguments& arguments);

}  // namespace llmprof::app
