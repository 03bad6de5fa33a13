// A tokenizer.json and a text, one after the other with a zero byte between them: what is accepted must encode every
// text.

#include "fuzz.h"
#include "load/tokenizer.h"
#include "load/unicode.h"

namespace llmprof::fuzz {
namespace {

void run(std::string_view input) {
  const std::size_t end = std::min(input.find('\0'), input.size());
  const std::string_view text = input.substr(std::min(end + 1, input.size())).substr(0, 200);
  require(load::composed(load::composed(text)) == load::composed(text));
  const auto tokenizer = load::Tokenizer::parse(input.substr(0, end), "input");
  if (!tokenizer) {
    require(!tokenizer.error().message.empty());
    return;
  }
  for (const std::int32_t id : tokenizer->encode(text)) require(id >= 0);
  for (const load::Tokenizer::Word& word : tokenizer->words()) require(word.text.size() > 1);
}

std::vector<std::string> seeds() {
  const std::string bytes =
      R"({"added_tokens":[{"id":9,"content":"<s>","special":true,"normalized":false,"lstrip":true,"rstrip":true}],)"
      R"("normalizer":{"type":"NFC"},"pre_tokenizer":{"type":"Sequence","pretokenizers":[{"type":"Split","pattern":)"
      R"({"Regex":"(?i:'s|'t)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s+(?!\\S)|\\s+"},)"
      R"("behavior":"Isolated","invert":false},{"type":"ByteLevel","add_prefix_space":false,"use_regex":false}]},)"
      R"("post_processor":{"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"<s>"}},{"Sequence":{}}]},)"
      R"("model":{"type":"BPE","ignore_merges":true,"vocab":{"a":0,"b":1,"ab":2,"Ġ":3,"Ġa":4},"merges":["a b",["Ġ","a"]]}})";
  const std::string words =
      R"({"normalizer":{"type":"Sequence","normalizers":[{"type":"Prepend","prepend":"▁"},{"type":"Replace","pattern":)"
      R"({"String":" "},"content":"▁"}]},"pre_tokenizer":{"type":"Metaspace","replacement":"▁","prepend_scheme":"always",)"
      R"("split":true},"model":{"type":"BPE","unk_token":"?","fuse_unk":true,"byte_fallback":true,"vocab":{"?":0,"a":1,)"
      R"("▁":2,"▁a":3,"<0xC3>":4},"merges":[["▁","a"]]}})";
  return {bytes + std::string("\0ab <s> ab e\xCC\x81'S 12", 18), words + std::string("\0a a\xC3\xA9z", 7)};
}

std::vector<std::string> dictionary() {
  return {"\\\\p{L}",
          "\\\\p{Lu}",
          "\\\\s",
          "\\\\S",
          "(?!",
          "(?i:",
          "{1,3}",
          "[^",
          "\"Digits\"",
          "\"Metaspace\"",
          "\"ByteLevel\"",
          "\"Removed\"",
          "\"MergedWithNext\"",
          "\"MergedWithPrevious\"",
          "\"Contiguous\"",
          "\"first\"",
          "\"individual_digits\":true",
          "\"NFC\"",
          "\"normalized\":true",
          "\"invert\":true",
          "\"special\":true"};
}

}  // namespace

const Target kTarget{run, seeds, dictionary};

}  // namespace llmprof::fuzz
