#include "load/message.h"

#include <gtest/gtest.h>

namespace llmprof::load {
namespace {

Message message_of(std::string_view json) {
  Message message;
  EXPECT_TRUE(parse_message(json, message)) << json;
  return message;
}

TEST(Message, Completion) {
  const Message m = message_of(R"({"id":"cmpl-1","choices":[{"index":0,"text":" a\u00e9","finish_reason":null}],"usage":null})");
  EXPECT_TRUE(m.choices);
  EXPECT_EQ(m.text, " a\xC3\xA9");
  EXPECT_EQ(m.finish_reason, "");
  EXPECT_FALSE(m.completion_tokens);
}

TEST(Message, ChatInItsParts) {
  const Message role = message_of(R"({"choices":[{"delta":{"role":"assistant","content":""}}]})");
  EXPECT_TRUE(role.choices);
  EXPECT_EQ(role.text, "");
  const Message content = message_of(R"({"choices":[{"delta":{"content":"hi"},"finish_reason":"length"}]})");
  EXPECT_EQ(content.text, "hi");
  EXPECT_FALSE(content.reasoning);
  EXPECT_EQ(content.finish_reason, "length");
  const Message thought = message_of(R"({"choices":[{"delta":{"reasoning_content":"hm","content":null}}]})");
  EXPECT_EQ(thought.text, "hm");
  EXPECT_TRUE(thought.reasoning);
  const Message whole = message_of(R"({"choices":[{"message":{"role":"assistant","content":"all"}}],"object":"chat.completion"})");
  EXPECT_EQ(whole.text, "all");
}

TEST(Message, Usage) {
  const Message m = message_of(
      R"({"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":9,"prompt_tokens_details":{"cached_tokens":4},"x":{"completion_tokens":1}}})");
  EXPECT_FALSE(m.choices);
  EXPECT_EQ(m.prompt_tokens, 7);
  EXPECT_EQ(m.completion_tokens, 9);
  EXPECT_EQ(m.cached_tokens, 4);
}

TEST(Message, TokenIds) {
  EXPECT_EQ(message_of(R"({"choices":[{"text":"ab","token_ids":[5,6,7]}]})").token_ids, 3);
}

TEST(Message, Errors) {
  EXPECT_EQ(message_of(R"({"error":{"message":"no","type":"x","code":400}})").error, "no");
  EXPECT_EQ(message_of(R"({"error":"overloaded","error_type":"x"})").error, "overloaded");
  EXPECT_EQ(message_of(R"({"object":"error","message":"old"})").error, "old");
  EXPECT_EQ(message_of(R"({"message":"old","object":"error"})").error, "old");
  EXPECT_EQ(message_of(R"({"detail":"Not Found"})").error, "Not Found");
  EXPECT_EQ(message_of(R"({"error":{}})").error, "an error without words");
}

TEST(Message, SameNamesElsewhereMeanNothing) {
  const Message m = message_of(R"({"text":"no","content":"no","x":{"choices":[{"text":"no"}]},"choices":[{"logprobs":{"text":"no"},"text":"yes"}]})");
  EXPECT_EQ(m.text, "yes");
}

TEST(Message, WhatIsNone) {
  Message m;
  for (const char* json : {"", "null", "7", "\"x\"", "[]", "{", R"({"choices":[{"text":"a"}])", "{} {}", "[DONE]", "{\"a\":\"\xFF\"}"})
    EXPECT_FALSE(parse_message(json, m)) << json;
  EXPECT_FALSE(parse_message("{\"a\":" + std::string(100, '[') + std::string(100, ']') + "}", m));
}

}  // namespace
}  // namespace llmprof::load
