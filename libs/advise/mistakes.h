#pragma once
// Mistakes that are often copied from page to page, found in a command, an environment or a script, each with what to
// do instead.

#include <string>
#include <vector>

#include "advise/given_command.h"

namespace llmprof::advise {

std::vector<std::string> mistakes_in(const GivenCommand& given);

}  // namespace llmprof::advise
