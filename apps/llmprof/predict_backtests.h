#pragma once
// llmprof predict --backtest, and --from RUN --measured RUN: how wrong predictions have been.

#include <string>

#include "verb.h"

namespace llmprof::app {

// Those that are part of the program, and folders that positionals name.
Result<std::string> backtest_page(const Arguments& arguments);
// The steps of other runs, predicted from one of the same program; --save keeps them as a back-test.
Result<std::string> measured_steps_page(const Arguments& arguments);

}  // namespace llmprof::app
