// Data sets of prompts in all their formats: what is accepted has something to send.

#include "fuzz.h"
#include "load/prompts.h"

namespace llmprof::fuzz {
namespace {

const load::Tokenizer& tokenizer() {
  static const auto* const made = new auto(load::Tokenizer::parse(
      R"({"model":{"type":"BPE","byte_fallback":false,"unk_token":"?","vocab":{"?":0,"a":1,"▁":2,"▁a":3},"merges":["▁ a"]},)"
      R"("pre_tokenizer":{"type":"Metaspace","replacement":"▁","prepend_scheme":"always","split":true}})",
      "made"));
  require(made->has_value());
  return **made;
}

void run(std::string_view input) {
  for (const bool counts : {false, true}) {
    load::PromptOptions options;
    options.most = 8;
    if (counts) options.tokenizer = &tokenizer();
    // Made-up text of a trace may be long: time, not risk.
    if (input.find("input_length") != std::string_view::npos) options.most = 1;
    const auto prompts = load::parse_prompts(input, "input", options);
    if (!prompts) {
      require(!prompts.error().message.empty());
      continue;
    }
    require(!prompts->prompts.empty() && prompts->prompts.size() <= 8);
    for (const load::Prompt& prompt : prompts->prompts) {
      require(!prompt.text.empty() || !prompt.ids.empty() || !prompt.messages.empty());
      require(prompt.output_tokens >= 1 && prompt.tokens >= 0);
    }
  }
}

std::vector<std::string> seeds() {
  return {
      R"([{"id":"x","conversations":[{"from":"human","value":"a a a a a"},{"from":"gpt","value":"a a a a a"}]}])",
      R"({"conversations":[{"from":"human","value":"a a a a a"},{"from":"gpt","value":"a a a a a"}]})"
      "\n\n",
      R"({"prompt":"a a","output_tokens":3})"
      "\n"
      R"({"prompt":[1,2],"max_tokens":3,"id":"y"})"
      "\n",
      R"({"custom_id":"z","body":{"messages":[{"role":"user","content":[{"type":"text","text":"a"}]}],"max_tokens":1}})",
      R"({"timestamp":0,"input_length":40,"output_length":3,"hash_ids":[1,2]})"
      "\n"};
}

std::vector<std::string> dictionary() {
  return {
      "\"conversations\"",         "\"value\"",         "\"prompt\"", "\"messages\"", "\"role\"",         "\"content\"",
      "\"max_completion_tokens\"", "\"output_tokens\"", "\"body\"",   "\"hash_ids\"", "\"input_length\"", "1e999"};
}

}  // namespace

const Target kTarget{run, seeds, dictionary};

}  // namespace llmprof::fuzz
