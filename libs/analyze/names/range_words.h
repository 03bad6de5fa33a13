#pragma once
// What the name of a range says by its words, where no pattern knows the whole name: "gpt2_forward", "Train step 5",
// "Layer 3", "XlaModule:#hlo_module=jit_step,program_id=3#". docs/format/analysis.md states the same rules in words.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analyze/names/grammar.h"

namespace llmprof::analyze {

struct RangeName {
  std::string label;               // what the program calls it, without numbers: "Train step", "jit_step"
  std::vector<std::string> words;  // of the label, in small letters: snake, camel, spaces and signs separate
  std::optional<std::int64_t> number;
};

RangeName read_name(std::string_view name);

// All numbers as '#': ranges of one kind that differ by a number have the same shape.
std::string shape_of(std::string_view name);

// By words alone; kPlain if they say nothing. Its surroundings may still say otherwise (passes/classify.h).
Meaning meaning_by_words(std::string_view name, std::string_view domain);

// "Layer 3" -> "Layer.3", "block_3" -> "block.3", "h.3" as it is; "" if the name is not that of a numbered block.
std::string block_path(std::string_view name);

// Which way through a model a name says, of a pass or of a part of it: "layernorm_backward".
enum class Direction : std::uint8_t { kNeither, kForward, kBackward };
Direction direction_of(std::string_view name);

// Whether ranges of this name, which nothing contains and which come again and again, can be steps of the program:
// not those of single operators ("aten::mm").
bool can_be_step(const RangeName& name);
bool is_step_word(const RangeName& name);  // it holds a word like "step" or "iteration"

}  // namespace llmprof::analyze
