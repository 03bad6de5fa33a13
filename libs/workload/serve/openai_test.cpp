// Bodies of requests to what is asked of the engine, and what it generated to bodies and events.

#include "workload/serve/openai.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/json.h"

namespace llmprof::workload::openai {
namespace {

using base::Json;
using testing::ElementsAre;
using testing::HasSubstr;

const Limits kLimits{.model = "tiny", .vocab = 512, .max_model_len = 64, .eos = {}};

CompletionRequest accepted(Endpoint endpoint, const char* body, const Limits& limits = kLimits) {
  const Parsed parsed = parse(endpoint, body, limits);
  EXPECT_TRUE(parsed.completion) << parsed.refusal.message;
  return parsed.completion.value_or(CompletionRequest{});
}
CompletionRequest accepted(const char* body) { return accepted(Endpoint::kCompletions, body); }

Refusal refused(Endpoint endpoint, const std::string& body) {
  const Parsed parsed = parse(endpoint, body, kLimits);
  EXPECT_FALSE(parsed.completion) << body;
  EXPECT_FALSE(parsed.refusal.message.empty()) << body;
  return parsed.refusal;
}

TEST(OpenAi, APromptIsATextOrTokenIds) {
  EXPECT_THAT(accepted(R"({"prompt":"Hi!"})").generation.prompt, ElementsAre('H', 'i', '!'));
  EXPECT_THAT(accepted(R"({"prompt":"ä"})").generation.prompt, ElementsAre(0xC3, 0xA4));
  EXPECT_THAT(accepted(R"({"prompt":[5,0,511]})").generation.prompt, ElementsAre(5, 0, 511));
  EXPECT_THAT(accepted(R"({"prompt":["Hi"]})").generation.prompt, ElementsAre('H', 'i'));
  EXPECT_THAT(accepted(R"({"prompt":[[5,6]]})").generation.prompt, ElementsAre(5, 6));
  const Limits few{.model = "m", .vocab = 100, .max_model_len = 64, .eos = {}};
  EXPECT_THAT(accepted(Endpoint::kCompletions, R"({"prompt":"z"})", few).generation.prompt, ElementsAre('z' % 100));
}

TEST(OpenAi, AChatIsALineForEachMessageAndTheAssistantsTurn) {
  const auto chat = accepted(Endpoint::kChat, R"({"messages":[{"role":"user","content":"Hi"}]})");
  EXPECT_EQ(chat.generation.prompt, encode("user: Hi\nassistant: ", 512));
  EXPECT_EQ(chat.generation.most_tokens, 64 - 20) << "as many as the model has room for";
  const auto parts = accepted(
      Endpoint::kChat,
      R"({"messages":[{"role":"user","content":[{"type":"text","text":"H"},{"type":"text","text":"i"}]}],"max_tokens":9})");
  EXPECT_EQ(parts.generation.prompt, chat.generation.prompt);
  EXPECT_EQ(parts.generation.most_tokens, 9);
  EXPECT_EQ(accepted(Endpoint::kChat,
                     R"({"messages":[{"role":"user","content":"Hi"}],"max_tokens":9,"max_completion_tokens":3})")
                .generation.most_tokens,
            3);
}

TEST(OpenAi, WhatIsNotGivenOrNullHasItsDefault) {
  const auto plain = accepted(R"({"prompt":"a","max_tokens":null,"temperature":null,"stop":null,"n":1,"logprobs":null,
      "top_p":1.0,"frequency_penalty":0.0,"presence_penalty":0,"repetition_penalty":1.0,"user":"x","unknown":[1]})");
  EXPECT_EQ(plain.generation.most_tokens, 16);
  EXPECT_EQ(plain.generation.sampler.kind, Sampler::Kind::kGreedy);
  EXPECT_EQ(plain.generation.priority, 0);
  EXPECT_TRUE(plain.generation.stop.empty());
  EXPECT_FALSE(plain.stream || plain.include_usage || plain.return_token_ids);
  EXPECT_TRUE(accepted(R"({"prompt":"a","top_p":0.5})").generation.stop.empty()) << "greedy: it changes nothing";
}

TEST(OpenAi, WhatIsGivenIsTaken) {
  const auto all = accepted(R"({"model":"tiny","prompt":"a","max_tokens":7,"temperature":0.5,"top_k":4,"seed":9,
      "priority":-2,"stream":true,"stream_options":{"include_usage":true},"return_token_ids":true,
      "stop_token_ids":[3,4]})");
  EXPECT_EQ(all.generation.most_tokens, 7);
  EXPECT_EQ(all.generation.sampler.kind, Sampler::Kind::kTopK);
  EXPECT_EQ(all.generation.sampler.k, 4);
  EXPECT_EQ(all.generation.sampler.seed, 9U);
  EXPECT_DOUBLE_EQ(all.generation.sampler.temperature, 0.5);
  EXPECT_EQ(all.generation.priority, -2);
  EXPECT_THAT(all.generation.stop, ElementsAre(3, 4));
  EXPECT_TRUE(all.stream && all.include_usage && all.return_token_ids);
  EXPECT_EQ(accepted(R"({"prompt":"a","temperature":1})").generation.sampler.k, 512) << "all of the vocabulary";
}

TEST(OpenAi, TheEndTokenStopsUnlessItIsIgnored) {
  Limits limits = kLimits;
  limits.eos = 2;
  EXPECT_THAT(accepted(Endpoint::kCompletions, R"({"prompt":"a"})", limits).generation.stop, ElementsAre(2));
  EXPECT_TRUE(accepted(Endpoint::kCompletions, R"({"prompt":"a","ignore_eos":true,"min_tokens":5})", limits)
                  .generation.stop.empty());
}

TEST(OpenAi, EveryErrorNamesItsField) {
  const std::pair<const char*, const char*> kBad[] = {
      {R"({})", "prompt"},
      {R"({"prompt":""})", "prompt"},
      {R"({"prompt":[]})", "prompt"},
      {R"({"prompt":[1,"a"]})", "prompt"},
      {R"({"prompt":[1,512]})", "prompt"},
      {R"({"prompt":[1,-1]})", "prompt"},
      {R"({"prompt":[1,2.5]})", "prompt"},
      {R"({"prompt":["a","b"]})", "prompt"},
      {R"({"prompt":{"a":1}})", "prompt"},
      {R"({"prompt":"a","max_tokens":0})", "max_tokens"},
      {R"({"prompt":"a","max_tokens":64})", "max_tokens"},
      {R"({"prompt":"a","max_tokens":1e30})", "max_tokens"},
      {R"({"prompt":"a","max_tokens":18446744073709551615})", "max_tokens"},
      {R"({"prompt":"a","temperature":-1})", "temperature"},
      {R"({"prompt":"a","temperature":"hot"})", "temperature"},
      {R"({"prompt":"a","temperature":1,"top_p":0.5})", "top_p"},
      {R"({"prompt":"a","seed":1.5})", "seed"},
      {R"({"prompt":"a","stream":1})", "stream"},
      {R"({"prompt":"a","stream_options":3})", "stream_options"},
      {R"({"prompt":"a","stream_options":{"include_usage":3}})", "stream_options"},
      {R"({"prompt":"a","n":2})", "n"},
      {R"({"prompt":"a","stop":"x"})", "stop"},
      {R"({"prompt":"a","stop_token_ids":3})", "stop_token_ids"},
      {R"({"prompt":"a","stop_token_ids":[3],"min_tokens":2})", "min_tokens"},
      {R"({"prompt":"a","logprobs":5})", "logprobs"},
      {R"({"prompt":"a","frequency_penalty":0.5})", "frequency_penalty"},
      {R"({"prompt":"a","echo":true})", "echo"},
      {R"({"prompt":"a","priority":"high"})", "priority"},
  };
  for (const auto& [body, field] : kBad) {
    const Refusal refusal = refused(Endpoint::kCompletions, body);
    EXPECT_EQ(refusal.status, 400) << body;
    EXPECT_EQ(refusal.param, field) << body << ": " << refusal.message;
  }
  for (const char* const body :
       {R"({"messages":[]})", R"({"messages":"Hi"})", R"({"messages":[3]})", R"({"messages":[{"content":"Hi"}]})",
        R"({"messages":[{"role":"user","content":3}]})",
        R"({"messages":[{"role":"user","content":[{"type":"image_url"}]}]})"})
    EXPECT_EQ(refused(Endpoint::kChat, body).param, "messages") << body;
  for (const char* const body : {"", "{", "[]", "3", "{\"prompt\":\"a\"} x"})
    EXPECT_EQ(refused(Endpoint::kCompletions, body).status, 400) << body;
}

TEST(OpenAi, AnotherModelIsNotFound) {
  const Refusal refusal = refused(Endpoint::kCompletions, R"({"model":"gpt-4","prompt":"a"})");
  EXPECT_EQ(refusal.status, 404);
  EXPECT_EQ(refusal.param, "model");
  const Json error = Json::parse(error_body(refusal))["error"];
  EXPECT_EQ(error["type"], "NotFoundError");
  EXPECT_EQ(error["code"], 404);
  EXPECT_THAT(error["message"].get<std::string>(), HasSubstr("tiny"));
}

Answer answer_of(Endpoint endpoint) {
  return {.endpoint = endpoint,
          .id = "cmpl-\"x\"",
          .request_id = "\"x\"",
          .model = "a\\b",
          .created_s = 7,
          .prompt_tokens = 3,
          .cached_tokens = 2,
          .return_token_ids = true,
          .include_usage = true};
}

TEST(OpenAi, AWholeAnswer) {
  const std::vector<Token> prompt{1, 2, 3}, tokens{'a', '"', '\n', 300};
  const Json text = Json::parse(body(answer_of(Endpoint::kCompletions), prompt, tokens, Finish::kStop));
  EXPECT_EQ(text["id"], "cmpl-\"x\"");
  EXPECT_EQ(text["object"], "text_completion");
  EXPECT_EQ(text["model"], "a\\b");
  EXPECT_EQ(text["choices"][0]["text"], "a\"\n\uFFFD");
  EXPECT_EQ(text["choices"][0]["token_ids"], Json(tokens));
  EXPECT_EQ(text["choices"][0]["prompt_token_ids"], Json(prompt));
  EXPECT_EQ(text["choices"][0]["finish_reason"], "stop");
  EXPECT_EQ(text["usage"], Json::parse(R"({"prompt_tokens":3,"completion_tokens":4,"total_tokens":7,
      "prompt_tokens_details":{"cached_tokens":2}})"));
  const Json chat = Json::parse(body(answer_of(Endpoint::kChat), prompt, tokens, Finish::kLength));
  EXPECT_EQ(chat["object"], "chat.completion");
  EXPECT_EQ(chat["choices"][0]["message"], Json::parse("{\"role\":\"assistant\",\"content\":\"a\\\"\\n\uFFFD\"}"));
  EXPECT_EQ(chat["choices"][0]["finish_reason"], "length");
}

// Every event is one line of JSON behind "data: ", and an empty line.
std::vector<std::string> events_of(const std::string& text) {
  std::vector<std::string> events;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = text.find("\n\n", at);
    EXPECT_EQ(text.compare(at, 6, "data: "), 0) << text;
    EXPECT_NE(end, std::string::npos);
    events.push_back(text.substr(at + 6, end - at - 6));
    EXPECT_EQ(events.back().find('\n'), std::string::npos);
    at = end + 2;
  }
  return events;
}

TEST(OpenAi, EventsOfEveryToken) {
  const Answer text = answer_of(Endpoint::kCompletions), chat = answer_of(Endpoint::kChat);
  for (Token token = -1; token < 600; ++token) {
    const Json event = Json::parse(events_of(token_event(text, token, {}, true)).at(0));
    EXPECT_EQ(event["choices"][0]["text"], text_of(token));
    EXPECT_EQ(event["choices"][0]["token_ids"], Json::array({token}));
    EXPECT_TRUE(event["choices"][0]["finish_reason"].is_null());
    EXPECT_TRUE(event["usage"].is_null());
  }
  const Json first = Json::parse(events_of(token_event(chat, 'a', {}, true)).at(0));
  EXPECT_EQ(first["object"], "chat.completion.chunk");
  EXPECT_EQ(first["choices"][0]["delta"], Json::parse(R"({"role":"assistant","content":"a"})"));
  const Json last = Json::parse(events_of(token_event(chat, 'b', Finish::kLength, false)).at(0));
  EXPECT_EQ(last["choices"][0]["delta"], Json::parse(R"({"content":"b"})"));
  EXPECT_EQ(last["choices"][0]["finish_reason"], "length");
  const Json aborted = Json::parse(events_of(token_event(text, {}, Finish::kAborted, false)).at(0));
  EXPECT_EQ(aborted["choices"][0]["text"], "");
  EXPECT_EQ(aborted["choices"][0]["finish_reason"], "abort");
}

TEST(OpenAi, UsageComesLastWhereItIsWanted) {
  Answer answer = answer_of(Endpoint::kCompletions);
  const auto events = events_of(last_events(answer, 4));
  ASSERT_EQ(events.size(), 2U);
  const Json usage = Json::parse(events[0]);
  EXPECT_TRUE(usage["choices"].empty());
  EXPECT_EQ(usage["usage"]["completion_tokens"], 4);
  EXPECT_EQ(events[1], "[DONE]");
  answer.include_usage = false;
  EXPECT_THAT(events_of(last_events(answer, 4)), ElementsAre("[DONE]"));
  EXPECT_FALSE(Json::parse(events_of(token_event(answer, 'a', {}, true)).at(0)).contains("usage"));
}

TEST(OpenAi, ListsItsModel) {
  const Json models = Json::parse(models_body(kLimits, 5));
  EXPECT_EQ(models["data"][0]["id"], "tiny");
  EXPECT_EQ(models["data"][0]["max_model_len"], 64);
}

}  // namespace
}  // namespace llmprof::workload::openai
