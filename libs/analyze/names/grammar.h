#pragma once
// The annotation grammar (ARCHITECTURE 4a and 5): what the name of a range says about stage, step and module.
// docs/format/analysis.md states the same rules in words.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace llmprof::analyze {

enum class RangeKind : std::uint8_t {
  kPlain,   // says nothing about the model
  kStage,   // a container of steps; one step itself if there are none inside
  kStep,    // one pass over the model
  kModule,  // a part of the model
};

inline constexpr double kDeclaredConfidence = 1;    // the llmprof domain
inline constexpr double kPassConfidence = 0.95;     // the call of a model, by its arguments (record --modules)
inline constexpr double kPatternConfidence = 0.9;   // a plain name that matches a pattern
inline constexpr double kWordConfidence = 0.8;      // words of a plain name (range_words.h)
inline constexpr double kRepeatedConfidence = 0.7;  // outermost ranges that come again and again: steps of some kind
inline constexpr double kSampledConfidence = 0.6;   // functions on stack samples (steps/sampled_loops.h)
inline constexpr double kInferredConfidence = 0.5;  // by time alone: a thread without steps of its own

struct StepSize {
  std::optional<std::int64_t> batch, tokens, context;
  // Of sequences that differ in length only sums are known.
  std::optional<std::int64_t> rows = {};                          // new tokens of all sequences
  std::optional<std::int64_t> contexts = {}, contexts_most = {};  // their lengths, new tokens included: bounds
  std::optional<std::int64_t> generating = {};                    // sequences among them with one new token each
  std::optional<std::int64_t> pairs = {};  // of a new token and one that it attends to, itself included, causal
};

// What one range means by itself, before its surroundings are looked at.
struct Meaning {
  RangeKind kind = RangeKind::kPlain;
  std::string stage;  // of a stage or step; "" if its name is none of the known stages
  double confidence = 0;
  StepSize size;  // as far as the name says it
  std::string why;
};

// A row of range_patterns.json or a user's rule: plain names of any domain.
struct RangePattern {
  std::string pattern;  // the whole name; '*' stands for any text
  RangeKind kind = RangeKind::kPlain;
  std::string stage;
  bool container = false;   // holds steps rather than being one
  std::string batch_after;  // the number behind this text is the number of sequences, each with one new token
  std::string source;       // where the name is from
  bool users = false;       // a user's rule: it wins over everything else, and its stage may have any name
};

// The rows of the file built into the program.
Result<std::vector<RangePattern>> built_in_patterns();
Result<std::vector<RangePattern>> parse_patterns(std::string_view json_text, std::string_view where);

bool matches(std::string_view pattern, std::string_view text);

Meaning meaning_of(std::string_view name, std::string_view domain, std::string_view category,
                   const std::vector<RangePattern>& patterns);

// What the names of vLLM's, SGLang's and TensorRT-LLM's steps say of their batches; nothing of other names.
StepSize engine_step_size(std::string_view name);

// "decode" -> "decode", "warmup" -> "warm-up", an unknown name -> "".
std::string_view known_stage(std::string_view name);

// batch | tokens << 16 | context << 40, as include/llmprof/annotate.h packs them; a field of 0 is unknown.
StepSize unpack(std::optional<std::int64_t> payload);

// The path of `name` inside `outer`: joined with ".", unless the name is already a full path. The path begins below the
// model: "model.layers.3" is "layers.3".
std::string module_path(std::string_view outer, std::string_view name);

// The same for all layers: "layers.3.mlp.up_proj" -> "mlp.up_proj". What follows the last numeric component; a path
// that ends in a number loses only the number ("layers.3" -> "layers"), one without numbers is its own operator.
std::string operator_of(std::string_view module);

}  // namespace llmprof::analyze
