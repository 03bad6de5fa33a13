#include "load/tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace llmprof::load {
namespace {
TEST(Tokenizer, Stub) { EXPECT_FALSE(Tokenizer::parse("{}", "t")); }
}  // namespace
}  // namespace llmprof::load
