// Data sets of prompts: untrusted files. A ShareGPT file has 700 MB, so its conversations are taken while it is parsed.

#include <fmt/format.h>

#include <algorithm>

#include "base/errors.h"
#include "base/file.h"
#include "base/json.h"
#include "base/strings.h"
#include "load/prompts.h"
#include "serving/random.h"

namespace llmprof::load {
namespace {

using base::Json;

constexpr std::uint64_t kMostBytes = std::uint64_t{2} << 30;
constexpr std::size_t kMostPrompts = 10'000'000;

struct Conversation {
  std::string id, prompt, answer;
  int turns = 0;
};

// [{"id": …, "conversations": [{"from": …, "value": …}, …]}, …]: the first two values of each, the rest is passed over.
class ShareGptReader : public nlohmann::json_sax<Json> {
 public:
  std::vector<Conversation> conversations;
  std::size_t error_at = 0;
  bool too_deep = false;

  bool start_object(std::size_t) override { return open(); }
  bool start_array(std::size_t) override { return open(); }
  bool end_object() override {
    if (depth_ == 4 && in_list_) ++current_.turns;
    if (--depth_ == 1 && conversations.size() < kMostPrompts) conversations.push_back(std::exchange(current_, {}));
    return true;
  }
  bool end_array() override {
    if (--depth_ == 2) in_list_ = false;
    return true;
  }
  bool key(string_t& name) override {
    key_ = name;
    if (depth_ == 2) in_list_ = name == "conversations" || name == "conversation";
    return true;
  }
  bool string(string_t& text) override {
    if (depth_ == 2 && key_ == "id") current_.id = text;
    if (depth_ == 4 && in_list_ && key_ == "value" && current_.turns < 2)
      (current_.turns == 0 ? current_.prompt : current_.answer) = std::move(text);
    return true;
  }
  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const string_t&) override { return true; }
  bool binary(binary_t&) override { return true; }
  bool parse_error(std::size_t at, const std::string&, const Json::exception&) override {
    error_at = at;
    return false;
  }

 private:
  bool open() {
    too_deep = ++depth_ > 64;
    return !too_deep;
  }

  int depth_ = 0;  // 1: the list, 2: a conversation, 3: its turns, 4: a turn
  bool in_list_ = false;
  std::string key_;
  Conversation current_;
};

void count(Prompt& prompt, const Tokenizer* tokenizer) {
  if (tokenizer == nullptr) return;
  prompt.ids = tokenizer->encode(prompt.text);
  prompt.tokens = static_cast<std::int64_t>(prompt.ids.size());
  prompt.counted = true;
}

Result<Prompts> take_conversations(std::vector<Conversation> all, std::string_view where,
                                   const PromptOptions& options) {
  if (options.tokenizer == nullptr)
    return Error{ErrorCode::kUsage,
                 fmt::format("{}: the lengths of ShareGPT's conversations are counted in tokens", where),
                 "say which tokenizer counts them (--tokenizer, a tokenizer.json)"};
  serving::Random random(options.seed);
  for (std::size_t i = all.size(); i > 1; --i)
    std::swap(all[i - 1], all[static_cast<std::size_t>(random.between(0, static_cast<std::int64_t>(i) - 1))]);
  Prompts out;
  std::int64_t looked_at = 0, few_turns = 0, too_short = 0, too_long = 0;
  for (Conversation& each : all) {
    if (options.most > 0 && static_cast<std::int64_t>(out.prompts.size()) >= options.most) break;
    ++looked_at;
    if (each.turns < 2) {
      ++few_turns;
      continue;
    }
    Prompt prompt;
    prompt.text = std::move(each.prompt);
    prompt.id = std::move(each.id);
    count(prompt, options.tokenizer);
    const std::int64_t answer = options.tokenizer->count(each.answer);
    prompt.output_tokens = options.output_tokens > 0 ? options.output_tokens : answer;
    if (prompt.tokens < kShareGptLeast || (options.output_tokens == 0 && answer < kShareGptLeast)) {
      ++too_short;
    } else if (prompt.tokens > kShareGptMostPrompt || prompt.tokens + prompt.output_tokens > kShareGptMostTotal) {
      ++too_long;
    } else {
      out.prompts.push_back(std::move(prompt));
    }
  }
  out.description = fmt::format(
      "{} conversations of {}, seed {}; of {} looked at, {} left out with fewer than two turns, {} too short (under {} "
      "tokens), "
      "{} too long (over {}, or {} with the answer)",
      out.prompts.size(), base::base_name(where), options.seed, looked_at, few_turns, too_short, kShareGptLeast,
      too_long, kShareGptMostPrompt, kShareGptMostTotal);
  if (out.prompts.empty()) return corrupt_error("{}: no usable conversation: {}", where, out.description);
  return out;
}

Result<void> read_conversations(std::string_view text, std::string_view where, std::vector<Conversation>& into) {
  ShareGptReader reader;
  bool good = false;
  try {
    good = Json::sax_parse(text.begin(), text.end(), &reader);
  } catch (const Json::exception&) {  // a number that no double can hold
  }
  if (reader.too_deep) return corrupt_error("{}: JSON nested too deeply", where);
  if (!good) return corrupt_error("{}:byte {}: not valid JSON", where, reader.error_at);
  std::move(reader.conversations.begin(), reader.conversations.end(), std::back_inserter(into));
  return {};
}

// JSON lines: {"prompt": …, "output_tokens": n} and chat requests {"messages": […], "max_tokens": n}, which OpenAI's
// batch files have as "body".
class LineReader {
 public:
  LineReader(std::string_view where, const PromptOptions& options) : where_(where), options_(options) {}

  Result<void> take(std::string_view line, std::int64_t number) {
    number_ = number;
    LLMPROF_LET(const Json object, base::parse_json(line, at()));
    if (!object.is_object()) return bad("not a JSON object");
    const bool wrapped = object.contains("body") && object["body"].is_object();
    const Json& request = wrapped ? object["body"] : object;
    Prompt prompt;
    for (const char* key : {"id", "custom_id", "request_id"}) {
      if (object.contains(key) && object[key].is_string()) prompt.id = object[key].get<std::string>();
    }
    LLMPROF_LET(prompt.output_tokens, output_tokens(request));
    if (request.contains("messages")) {
      LLMPROF_TRY(take_messages(request["messages"], prompt));
      prompt.messages = base::to_line(request["messages"]);
    } else {
      LLMPROF_TRY(take_prompt(request, prompt));
    }
    if (out.size() >= kMostPrompts) return bad(fmt::format("more than {} prompts", kMostPrompts));
    out.push_back(std::move(prompt));
    return {};
  }

  std::vector<Prompt> out;

 private:
  std::string at() const { return fmt::format("{} line {}", where_, number_); }
  Error bad(const std::string& what) const { return corrupt_error("{}: {}", at(), what); }

  Result<std::int64_t> output_tokens(const Json& request) const {
    if (options_.output_tokens > 0) return options_.output_tokens;
    for (const char* key : {"output_tokens", "max_completion_tokens", "max_tokens"}) {
      const auto found = request.find(key);
      if (found == request.end() || found->is_null()) continue;
      if (!found->is_number_integer() || found->get<std::int64_t>() < 1 ||
          found->get<std::int64_t>() > serving::kMostRequestTokens)
        return bad(fmt::format("\"{}\" is not a number of tokens, 1 to {}", key, serving::kMostRequestTokens));
      return found->get<std::int64_t>();
    }
    Error error = bad("no \"output_tokens\" and no \"max_tokens\"");
    error.hint = "say how many tokens each request asks for (--output-tokens)";
    return error;
  }

  Result<void> take_prompt(const Json& request, Prompt& prompt) const {
    const auto found = request.find("prompt");
    if (found == request.end()) return bad("no \"prompt\" and no \"messages\"");
    if (found->is_string()) {
      prompt.text = found->get<std::string>();
      if (prompt.text.empty()) return bad("\"prompt\" is empty");
      count(prompt, options_.tokenizer);
      return {};
    }
    if (!found->is_array() || found->empty()) return bad("\"prompt\" is neither a text nor a list of token ids");
    for (const Json& id : *found) {
      if (!id.is_number_unsigned() || id.get<std::uint64_t>() > 0x7FFFFFFF)
        return bad("\"prompt\" holds what is no token id");
      prompt.ids.push_back(id.get<std::int32_t>());
    }
    prompt.tokens = static_cast<std::int64_t>(prompt.ids.size());
    prompt.counted = true;
    return {};
  }

  // The texts of a chat, one after the other; how the server joins them is its template's matter.
  Result<void> take_messages(const Json& messages, Prompt& prompt) const {
    if (!messages.is_array() || messages.empty()) return bad("\"messages\" is not a list of messages");
    for (const Json& message : messages) {
      if (!message.is_object() || !message.contains("role") || !message["role"].is_string())
        return bad("a message without a role");
      const auto content = message.find("content");
      if (content == message.end() || content->is_null()) continue;  // a call of a tool
      if (content->is_string()) {
        prompt.text += (prompt.text.empty() ? "" : "\n") + content->get<std::string>();
        continue;
      }
      if (!content->is_array()) return bad("the content of a message is neither a text nor a list");
      for (const Json& part : *content) {
        if (!part.is_object() || !part.contains("text") || !part["text"].is_string())
          return bad("a message with a part that is no text: images and sound are not sent");
        prompt.text += (prompt.text.empty() ? "" : "\n") + part["text"].get<std::string>();
      }
    }
    count(prompt, options_.tokenizer);
    return {};
  }

  std::string_view where_;
  const PromptOptions& options_;
  std::int64_t number_ = 0;
};

// Calls take(line, number) for every line that is not empty, until it says that it has enough.
template <class Take>
Result<void> for_each_line(std::string_view text, const Take& take) {
  for (std::int64_t number = 1; !text.empty(); ++number) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = base::trimmed(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.empty()) continue;
    LLMPROF_LET(const bool more, take(line, number));
    if (!more) break;
  }
  return {};
}

}  // namespace

Result<Prompts> parse_prompts(std::string_view text, std::string_view where, const PromptOptions& options) {
  const std::string_view all = base::trimmed(text);
  std::vector<Conversation> conversations;
  if (all.starts_with('[')) {
    LLMPROF_TRY(read_conversations(all, where, conversations));
    return take_conversations(std::move(conversations), where, options);
  }
  const std::string_view first = base::trimmed(all.substr(0, all.find('\n')));
  LLMPROF_LET(const Json object, base::parse_json(first, fmt::format("{} line 1", where)));
  if (object.is_object() && object.contains("conversations")) {
    const auto take = [&](std::string_view line, std::int64_t number) -> Result<bool> {
      LLMPROF_TRY(
          read_conversations(fmt::format("[{}]", line), fmt::format("{} line {}", where, number), conversations));
      return true;
    };
    LLMPROF_TRY(for_each_line(text, take));
    return take_conversations(std::move(conversations), where, options);
  }
  if (object.is_object() && object.contains("timestamp") && object.contains("input_length")) {
    serving::TraceOptions trace = options.trace;
    if (options.most > 0) trace.most_requests = options.most;
    LLMPROF_LET(serving::Workload workload, serving::parse_trace(text, where, trace));
    for (serving::Request& request : workload.requests) {
      if (options.output_tokens > 0) request.output_tokens = static_cast<std::int32_t>(options.output_tokens);
    }
    return synthetic_prompts(workload, options.tokenizer, options.seed);
  }
  LineReader reader(where, options);
  const auto take = [&](std::string_view line, std::int64_t number) -> Result<bool> {
    LLMPROF_TRY(reader.take(line, number));
    return options.most == 0 || static_cast<std::int64_t>(reader.out.size()) < options.most;
  };
  LLMPROF_TRY(for_each_line(text, take));
  Prompts out;
  out.prompts = std::move(reader.out);
  out.description = fmt::format("{} prompts of {}", out.prompts.size(), base::base_name(where));
  return out;
}

Result<Prompts> read_prompts(const std::string& path, const PromptOptions& options) {
  LLMPROF_LET(const std::string text, base::read_file(path, kMostBytes));
  if (base::trimmed(text).empty())
    return Error{ErrorCode::kCorruptInput, fmt::format("{}: no prompts in this file", path),
                 "a line is {\"prompt\": \"...\", \"output_tokens\": n}"};
  return parse_prompts(text, path, options);
}

Result<std::string> count_prompts(const std::string& path, const Tokenizer& tokenizer) {
  PromptOptions options;
  options.tokenizer = &tokenizer;
  options.output_tokens = 1;  // none is asked for
  LLMPROF_LET(const Prompts prompts, read_prompts(path, options));
  Json list = Json::array();
  for (const Prompt& prompt : prompts.prompts) list.push_back({{"tokens", prompt.tokens}, {"ids", prompt.ids}});
  return base::to_line({{"data_set", prompts.description}, {"prompts", std::move(list)}}) + "\n";
}

}  // namespace llmprof::load
