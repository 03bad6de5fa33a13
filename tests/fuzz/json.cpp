// base::parse_json: every JSON file goes through it. What it accepts must survive being written and read again.

#include "base/json.h"

#include "fuzz.h"

namespace llmprof::fuzz {
namespace {

void run(std::string_view input) {
  const auto value = base::parse_json(input, "input");
  if (!value) return;
  const std::string text = base::to_text(*value);
  const auto again = base::parse_json(text, "again");
  require(bool(again));
  require(base::to_text(*again) == text);
}

std::vector<std::string> seeds() {
  return {R"({"a": [1, -2.5e3, true, null, "x\u00e9\n"], "b": {"c": 18446744073709551615}})", "1e999", "[[[[[[]]]]]]",
          "\"\xff\"", "{\"a\":1,\"a\":2}"};
}

std::vector<std::string> dictionary() {
  return {"true", "false", "null", "\\u", "1e999", "-0", "[", "{", "\":", "\xEF\xBB\xBF", "\xED\xA0\x80"};
}

}  // namespace

const Target kTarget{run, seeds, dictionary};

}  // namespace llmprof::fuzz
