#pragma once
// llmprof predict --calibrate RUN: what recorded steps add to the times of their operators, kept for later predictions.

#include <string>

#include "verb.h"

namespace llmprof::app {

Result<std::string> calibrate_page(const Arguments& arguments);

}  // namespace llmprof::app
