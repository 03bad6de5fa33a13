// Names of ranges are a stranger's text: the grammar of stages, steps and modules, and the patterns of engines.
// Input: a file of patterns, a NUL, then a name.

#include "analyze/names/range_words.h"
#include "analyze/names/ranges.h"
#include "fuzz.h"

namespace llmprof::fuzz {
namespace {

void check_name(std::string_view name, const std::vector<analyze::RangePattern>& patterns) {
  for (const char* category : {"stage", "step", "module", ""}) {
    (void)analyze::meaning_of(name, "llmprof", category, patterns);
  }
  (void)analyze::meaning_of(name, "", "", patterns);
  const std::string path = analyze::module_path("layers.3", name);
  require(analyze::operator_of(path).size() <= path.size());
  require(analyze::module_path(path, path) == path);
  require(analyze::read_name(name).label.size() <= name.size());
  require(analyze::shape_of(name).size() <= name.size());
  (void)analyze::block_path(name);
  const analyze::StepSize size = analyze::engine_step_size(name);
  require(!size.batch || (*size.batch > 0 && size.rows && *size.rows >= *size.batch && *size.contexts >= 0));
}

// What `ranges --rules` prints is a file of rules, whatever the names are.
void check_rules(std::string_view name) {
  const analyze::NameMeaning step{
      .name = std::string(name), .domain = "", .kind = "step", .stage = "my stage", .why = ""};
  const auto rules = analyze::parse_range_rules(analyze::rules_text({step}), "printed");
  require(bool(rules) && rules->rules.size() == 1);
}

void run(std::string_view input) {
  static const auto built_in = analyze::built_in_patterns();
  require(bool(built_in));
  const std::size_t cut = input.find('\0');
  const std::string_view name = cut == std::string_view::npos ? input : input.substr(cut + 1);
  check_name(name, *built_in);
  if (!name.empty()) check_rules(name);
  if (cut == std::string_view::npos) return;
  if (const auto patterns = analyze::parse_patterns(input.substr(0, cut), "input")) check_name(name, *patterns);
  (void)analyze::matches(input.substr(0, cut), name);
}

std::vector<std::string> seeds() {
  const std::string row =
      R"([{"pattern": "decode_*_step*", "kind": "step", "stage": "decode", "container": true, "source": "x"}])";
  return {"XlaModule:#hlo_module=jit_step,program_id=3#",
          "Train step 5",
          "layers.3.mlp.up_proj",
          "model.layers.12",
          "execute_model_17",
          row + std::string("\0decode_1_step2", 15),
          std::string("a*b*c\0aXbYc", 11)};
}

std::vector<std::string> dictionary() {
  return {"layers.",       "model.",     "transformer.", "\"pattern\"", "\"kind\"", "\"stage\"", "\"source\"",
          "\"container\"", "\"module\"", "\"step\"",     "*",           ".",        "decode",    "prefill"};
}

}  // namespace

const Target kTarget{run, seeds, dictionary};

}  // namespace llmprof::fuzz
