#include "model/pattern.h"

#include <gtest/gtest.h>

#include <string>

namespace llmprof::model {
namespace {

bool matches(std::string_view pattern, std::string_view text) {
  const std::optional<Pattern> compiled = Pattern::compile(pattern);
  EXPECT_TRUE(compiled) << pattern;
  return compiled && compiled->matches(text);
}

TEST(Pattern, MatchesAtTheBeginningAsPythonDoes) {
  EXPECT_TRUE(matches("lm_head", "lm_head"));
  EXPECT_TRUE(matches("lm", "lm_head"));  // re.match asks for no end
  EXPECT_FALSE(matches("head", "lm_head"));
  EXPECT_TRUE(matches(".*head", "lm_head"));
  EXPECT_FALSE(matches("lm$", "lm_head"));
  EXPECT_TRUE(matches("^lm_head$", "lm_head"));
  EXPECT_TRUE(matches("", "anything"));
}

TEST(Pattern, WhatConfigsUse) {
  constexpr std::string_view kGate = "model.layers.12.mlp.gate", kUp = "model.layers.12.mlp.up_proj";
  EXPECT_TRUE(matches(".*mlp.gate$", kGate));
  EXPECT_FALSE(matches(".*mlp.gate$", "model.layers.12.mlp.gate_proj"));
  EXPECT_TRUE(matches(R"(.*mlp\.(gate|up|gate_up|down)_proj.*)", kUp));
  EXPECT_FALSE(matches(R"(.*mlp\.(gate|up|gate_up|down)_proj.*)", kGate));
  EXPECT_TRUE(matches(R"(model\.layers\.\d+\.mlp\.(?:up|down)_proj)", kUp));
  EXPECT_TRUE(matches(R"(model\.layers\.[0-9]{1,2}\.mlp)", kUp));
  EXPECT_FALSE(matches(R"(model\.layers\.[0-9]{3}\.mlp)", kUp));
  EXPECT_TRUE(matches(R"(model\.layers\.[0-9]{2,}\.mlp)", kUp));
  EXPECT_FALSE(matches(R"(model\.layers\.[^0-9]+\.mlp)", kUp));
  EXPECT_TRUE(matches("(a|b)?c+", "ccc"));
  EXPECT_TRUE(matches("a|b|c$", "c"));
  EXPECT_TRUE(matches("(a|(b|c)d)e", "cde"));
  EXPECT_FALSE(matches("(a|(b|c)d)e", "ce"));
  EXPECT_TRUE(matches("(ab){2}c", "ababc"));
  EXPECT_FALSE(matches("(ab){2}c", "abc"));
  EXPECT_TRUE(matches("(x*)*y", "xxy"));  // an empty loop
  EXPECT_TRUE(matches("[]a]b", "]b"));
  EXPECT_TRUE(matches(R"(\w+\W\w)", "ab.c"));
}

TEST(Pattern, WhatIsNotUnderstoodIsNotGuessed) {
  for (const char* text : {"(?!a)b", "(?=a)", "(?P<x>a)", R"(\bword)", R"((a)\1)", "(", ")", "[a", "a**", "*a", "a{9}",
                           "a{2", "\\", "(a", "[z-a]", "x{0,1}"}) {
    EXPECT_FALSE(Pattern::compile(text)) << text;
  }
  EXPECT_FALSE(Pattern::compile(std::string(10'000, 'a')));
  EXPECT_FALSE(Pattern::compile(std::string(100, '(') + std::string(100, ')')));
}

TEST(Pattern, NothingTakesLong) {
  // Backtracking would try 2^60 ways.
  EXPECT_FALSE(matches("(a+)+(a|aa)*(a*)*b", std::string(60, 'a')));
  EXPECT_FALSE(matches("(.*.*.*.*.*.*)*x", std::string(10'000, 'a')));
}

}  // namespace
}  // namespace llmprof::model
