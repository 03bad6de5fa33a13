// Files of rules (llmprof.toml, --ranges) are somebody's text, through a library's parser; and rules that a run brings
// along are a stranger's. Whatever is read can be kept with a run and means the same again.

#include "analyze/names/ranges.h"
#include "fuzz.h"

namespace llmprof::fuzz {
namespace {

void run(std::string_view input) {
  const auto rules = analyze::parse_range_rules(input, "input");
  if (!rules) return;
  const trace::NotedRules kept = analyze::noted(*rules);
  require(kept.rules.size() == rules->rules.size());
  const auto again = analyze::rules_of(kept);
  require(again.size() == rules->rules.size());
  for (std::size_t i = 0; i < again.size(); ++i) {
    require(again[i].pattern == rules->rules[i].pattern && again[i].stage == rules->rules[i].stage &&
            again[i].kind == rules->rules[i].kind && again[i].container == rules->rules[i].container);
    (void)analyze::meaning_of("Train step 5", "", "", again);
  }
}

std::vector<std::string> seeds() {
  return {
      "[ranges]\nrules = [\n  { name = \"Train step *\", is = \"container\", stage = \"training\" },\n"
      "  { name = \"blk*\", is = \"part\" },\n  { name = 'nccl*', is = \"nothing\" },\n]\n",
      "# nothing\n", "[[ranges.rules]]\nname = \"\"\"a\nb\"\"\"\nis = \"step\"\nstage = \"x\\u0041\"\n",
      "a.b.c = 1979-05-27T07:32:00Z\nd = [0x1F, 0b1, 1e-3, inf, nan, true]\n[ranges]\nrules = [{}]\n"};
}

std::vector<std::string> dictionary() {
  return {"[ranges]", "rules", "[[ranges.rules]]", "name", "is", "stage", "step", "container", "part", "nothing",
          "\"\"\"",   "'''",   "\\u0000",          "{",    "}",  "=",     ".",    "#",         "inf",  "07:32:00"};
}

}  // namespace

const Target kTarget{run, seeds, dictionary};

}  // namespace llmprof::fuzz
