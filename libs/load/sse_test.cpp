#include "load/sse.h"

#include <gtest/gtest.h>

#include <vector>

namespace llmprof::load {
namespace {

using Events = std::vector<std::string>;

// The events of a text that arrives in pieces of `piece` bytes; nothing follows it.
Events parsed(std::string_view text, std::size_t piece, SseParser& parser) {
  Events events;
  const auto add = [&](std::string_view data) { events.emplace_back(data); };
  for (std::size_t at = 0; at < text.size(); at += piece) parser.feed(text.substr(at, piece), add);
  parser.finish(add);
  return events;
}

Events parsed(std::string_view text) {
  SseParser whole;
  const Events events = parsed(text, std::max<std::size_t>(text.size(), 1), whole);
  for (std::size_t piece = 1; piece < 5; ++piece) {
    SseParser parser;
    EXPECT_EQ(parsed(text, piece, parser), events) << "in pieces of " << piece;
    EXPECT_EQ(parser.faults(), whole.faults());
  }
  return events;
}

TEST(Sse, LineEnds) {
  EXPECT_EQ(parsed("data: a\n\ndata: b\n\n"), (Events{"a", "b"}));
  EXPECT_EQ(parsed("data: a\r\n\r\ndata: b\r\n\r\n"), (Events{"a", "b"}));
  EXPECT_EQ(parsed("data: a\r\rdata: b\r\r"), (Events{"a", "b"}));
  EXPECT_EQ(parsed("data: a\r\n\ndata: b\n\r\n"), (Events{"a", "b"}));
}

TEST(Sse, Fields) {
  EXPECT_EQ(parsed(": keep-alive\n\ndata:a\n\n"), (Events{"a"}));              // a comment; no blank behind the colon
  EXPECT_EQ(parsed("data: {\ndata: \"x\": 1}\n\n"), (Events{"{\n\"x\": 1}"}));  // several lines are one event
  EXPECT_EQ(parsed("data:  two\n\n"), (Events{" two"}));                       // one blank belongs to the syntax
  EXPECT_EQ(parsed("event: token\nid: 7\nretry: 10\ndata: a\n\n"), (Events{"a"}));
  EXPECT_EQ(parsed("data\n\n"), (Events{""}));
  EXPECT_EQ(parsed("event: ping\n\n\n\n"), Events{});  // no data, no event
  EXPECT_EQ(parsed("\xEF\xBB\xBF" "data: a\n\n"), (Events{"a"}));
}

TEST(Sse, WhatHasNoEmptyLineBehindIt) {
  EXPECT_EQ(parsed("data: a\n\ndata: [DONE]\n"), (Events{"a", "[DONE]"}));
  EXPECT_EQ(parsed("data: a\n\ndata: [DONE]"), (Events{"a", "[DONE]"}));
  EXPECT_EQ(parsed(""), Events{});
}

TEST(Sse, UnknownFieldsAreFaults) {
  SseParser parser;
  EXPECT_EQ(parsed("dta: a\n\n{\"x\": 1}\n\ndata: b\n\n", 3, parser), (Events{"b"}));
  EXPECT_EQ(parser.faults(), 2);
  EXPECT_EQ(parser.events(), 1);
}

TEST(Sse, WhatIsTooLongIsLeftOut) {
  SseParser parser;
  const std::string piece(1 << 20, 'x');
  Events events;
  const auto add = [&](std::string_view data) { events.emplace_back(data); };
  parser.feed("data: ", add);
  for (int i = 0; i < 17; ++i) parser.feed(piece, add);
  parser.feed("\n\ndata: small\n\n", add);
  EXPECT_EQ(events, (Events{"small"}));
  EXPECT_EQ(parser.faults(), 1);
}

}  // namespace
}  // namespace llmprof::load
