#include "load/protocol.h"

#include <gtest/gtest.h>

#include "base/json.h"

namespace llmprof::load {
namespace {

base::Json body_of(const Prompt& prompt, const BodyOptions& options) {
  const Result<Bodies> bodies = Bodies::make(options);
  EXPECT_TRUE(bodies);
  const Result<base::Json> json = base::parse_json(bodies->body(prompt), "body");
  EXPECT_TRUE(json) << bodies->body(prompt);
  return *json;
}

const Prompt kPrompt{.text = "say \"é\"\n", .ids = {5, 6}, .tokens = 2, .output_tokens = 7};

TEST(Bodies, Completions) {
  const base::Json json = body_of(kPrompt, {.model = "m"});
  EXPECT_EQ(json["prompt"], "say \"é\"\n");
  EXPECT_EQ(json["max_tokens"], 7);
  EXPECT_EQ(json["model"], "m");
  EXPECT_EQ(json["stream"], true);
  EXPECT_EQ(json["stream_options"]["include_usage"], true);
  EXPECT_FALSE(json.contains("temperature"));
  EXPECT_FALSE(json.contains("ignore_eos"));
}

TEST(Bodies, Chat) {
  const base::Json json = body_of(kPrompt, {.endpoint = Endpoint::kChat, .model = "m", .stream = false, .ignore_eos = true, .temperature = 0.5});
  EXPECT_EQ(json["messages"][0]["role"], "user");
  EXPECT_EQ(json["messages"][0]["content"], "say \"é\"\n");
  EXPECT_FALSE(json.contains("prompt"));
  EXPECT_EQ(json["stream"], false);
  EXPECT_FALSE(json.contains("stream_options"));
  EXPECT_EQ(json["ignore_eos"], true);
  EXPECT_EQ(json["temperature"], 0.5);
}

TEST(Bodies, TokenIds) {
  EXPECT_EQ(body_of(kPrompt, {.model = "m", .send_ids = true})["prompt"], (base::Json{5, 6}));
  EXPECT_EQ(body_of({.ids = {5, 6}}, {.model = "m"})["prompt"], (base::Json{5, 6}));  // there is no text
  EXPECT_FALSE(body_of({.ids = {5, 6}}, {.model = "m"}).contains("max_tokens"));
}

TEST(Bodies, FurtherFieldsWin) {
  const base::Json json = body_of(kPrompt, {.model = "m", .extra = {{"max_tokens", "3"}, {"stream_options", "null"}, {"x", "{\"y\": [1]}"}}});
  EXPECT_EQ(json["max_tokens"], 3);
  EXPECT_FALSE(json.contains("stream_options"));
  EXPECT_EQ(json["x"]["y"][0], 1);
  const Result<Bodies> bad = Bodies::make({.extra = {{"top_p", "0,9"}}});
  ASSERT_FALSE(bad);
  EXPECT_NE(bad.error().message.find("--body top_p"), std::string::npos);
}

TEST(Url, WhatPeopleType) {
  for (const char* text : {"127.0.0.1:8000", "http://127.0.0.1:8000/", "http://127.0.0.1:8000/v1", "http://127.0.0.1:8000/v1/",
                           "http://127.0.0.1:8000/v1/chat/completions", "http://127.0.0.1:8000/v1/completions"})
    EXPECT_EQ(*base_url_of(text), "http://127.0.0.1:8000") << text;
  EXPECT_EQ(*base_url_of("https://host/proxy/v1"), "https://host/proxy");
  EXPECT_FALSE(base_url_of("ftp://host"));
  EXPECT_FALSE(base_url_of("http://"));
}

}  // namespace
}  // namespace llmprof::load
