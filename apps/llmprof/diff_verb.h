#pragma once
// What the files of `llmprof diff` share.

#include <string>

#include "base/result.h"
#include "report/diff.h"
#include "verb.h"

namespace llmprof::app {

// --html FILE: the two runs and the comparison as one page. `before` is "" where only a baseline is known.
Result<void> write_diff_page(const Arguments& arguments, const std::string& before, const std::string& after,
                             const report::DiffPage& diff);

}  // namespace llmprof::app
