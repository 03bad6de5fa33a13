#pragma once
// The sequences of a mixed pass as the user types them: "8x1@2048,1x512" is eight sequences that decode at a context of
// 2048 and one that prefills 512 tokens.

#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/pass.h"

namespace llmprof::analyze::design {

Result<std::vector<model::Sequences>> parse_sequences(std::string_view text);

}  // namespace llmprof::analyze::design
