// Requests over time, of a run whose numbers are derived by hand.
#include "pictures/requests.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analyze/summary.h"
#include "base/json.h"
#include "trace/test_run.h"

namespace llmprof::pictures {
namespace {

using base::Json;
using State = RequestState;
using ::testing::ElementsAre;

std::vector<std::string> texts(const std::vector<RequestPart>& parts) {
  std::vector<std::string> out;
  for (const RequestPart& part : parts)
    out.push_back(std::string(kRequestStates[static_cast<std::size_t>(part.state)]) + " " +
                  std::to_string(part.begin_ns) + ".." + std::to_string(part.end_ns) + " " +
                  std::to_string(part.steps));
  return out;
}

TEST(RequestParts, AreMergedToPixels) {
  const std::vector<RequestPart> parts = {{0, 100, State::kQueued, 0, 0},   {100, 104, State::kPrefill, 1, 0},
                                          {104, 106, State::kDecode, 1, 0}, {106, 126, State::kDecode, 1, 0},
                                          {126, 226, State::kDecode, 1, 0}, {300, 304, State::kStalled, 1, 3}};
  EXPECT_EQ(merged_parts(parts, {0, 400}, 1).size(), parts.size());
  // Of ten nanoseconds: what shares a pixel is what took most of it; long steps stay apart, and so does what is far
  // away.
  EXPECT_THAT(texts(merged_parts(parts, {0, 400}, 10)),
              ElementsAre("queued 0..100 0", "prefill 100..106 2", "decode 106..126 1", "decode 126..226 1",
                          "stalled 300..304 1"));
  EXPECT_THAT(texts(merged_parts(parts, {230, 400}, 10)), ElementsAre("stalled 300..304 1"));
}

// The engine: a's prompt from 2000 to 3000, then a token of a and the prompt of b to 4000; b loses its cache at 4100
// and computes it again from 5000 to 5500. The client of a wanted it sent at 400; c is known to its client alone, and
// fails.
void write_run(const std::string& folder) {
  auto writer = trace::RunWriter::create(folder);
  ASSERT_TRUE(writer) << writer.error().message;
  const auto name = [&](std::string_view text) { return writer->strings().intern(text); };
  writer->add(trace::ProcessRow{.id = 1, .pid = 7, .executable = name("serve"), .begin_ns = 0, .injected = true});
  writer->add(trace::ThreadRow{.id = 1, .process_id = 1, .tid = 7, .begin_ns = 0});
  std::int64_t range = 20;
  for (const auto& [begin, end] : {std::pair{2000, 3000}, {3000, 4000}, {5000, 5500}})
    writer->add(trace::RangeRow{
        .id = ++range, .begin_ns = begin, .end_ns = end, .name = name("decode"), .process_id = 1, .thread_id = 1});
  const auto mark = [&](std::int64_t ts, std::int64_t request, const char* event, std::int64_t tokens,
                        std::int64_t context) {
    writer->add(trace::RequestEventRow{.ts_ns = ts, .request_id = request, .event = name(event), .tokens = tokens,
                                       .context = context, .process_id = 1, .thread_id = 1});
  };
  mark(2100, 1, "member", 8, 8);
  mark(3100, 1, "member", 1, 9), mark(3200, 2, "member", 4, 4), mark(3300, 2, "blocks", 3, 4);
  mark(4100, 2, "preempted", 0, 0);
  mark(5100, 2, "member", 5, 5);
  trace::RequestRow a{.id = 1, .name = name("a"), .source = name("server"), .arrival_ns = 1000, .scheduled_ns = 2000,
                      .first_token_ns = 3000, .last_token_ns = 4000, .end_ns = 4000, .prompt_tokens = 8,
                      .output_tokens = 2, .status = name("finished")};
  trace::RequestRow b{.id = 2, .name = name("b"), .source = name("server"), .arrival_ns = 2500, .scheduled_ns = 3000,
                      .first_token_ns = 4000, .last_token_ns = 5500, .end_ns = 5500, .prompt_tokens = 4,
                      .output_tokens = 2, .preemptions = 1, .status = name("length")};
  trace::RequestRow seen{.id = 3, .name = name("a"), .source = name("client"), .arrival_ns = 400, .sent_ns = 700,
                         .first_token_ns = 3300, .last_token_ns = 4300, .end_ns = 4300, .output_tokens = 2,
                         .status = name("finished")};
  trace::RequestRow c{.id = 4, .name = name("c"), .source = name("client"), .arrival_ns = 5000, .sent_ns = 5200,
                      .first_token_ns = 6000, .last_token_ns = 7000, .end_ns = 7000, .output_tokens = 3,
                      .status = name("error"), .error = name("connection reset")};
  for (const auto& row : {a, b, seen, c}) writer->add(row);
  const auto finished = writer->finish({.command = {"serve"}, .environment = "{}", .source = "test"});
  ASSERT_TRUE(finished) << finished.error().message;
}

class RequestLanes : public testing::Test {
 protected:
  void SetUp() override {
    write_run(folder_ / "run.llmprof");
    auto run = trace::Run::open(folder_ / "run.llmprof");
    ASSERT_TRUE(run) << run.error().message;
    run_ = std::make_unique<trace::Run>(std::move(*run));
    auto summary = analyze::summarise(*run_, {});
    ASSERT_TRUE(summary) << summary.error().message;
    auto picture = RequestPicture::open(*run_, summary->requests);
    ASSERT_TRUE(picture) << picture.error().message;
    picture_ = std::move(*picture);
  }
  trace::TestFolder folder_;
  std::unique_ptr<trace::Run> run_;
  RequestPicture picture_;
};

TEST_F(RequestLanes, SayWhatEachWaitedFor) {
  ASSERT_EQ(picture_.lanes().size(), 3U);  // a has both views
  EXPECT_THAT(texts(picture_.lanes()[0].parts),
              ElementsAre("client 400..700 0", "queued 1000..2000 0", "prefill 2000..3000 1", "decode 3000..4000 1"));
  EXPECT_THAT(texts(picture_.lanes()[1].parts),
              ElementsAre("queued 2500..3000 0", "prefill 3000..4000 1", "preempted 4100..5000 0",
                          "prefill 5000..5500 1"));
  EXPECT_THAT(texts(picture_.lanes()[2].parts),
              ElementsAre("client 5000..5200 0", "awaited 5200..6000 0", "delivered 6000..7000 0"));
  EXPECT_EQ(picture_.span().begin_ns, 400);
  EXPECT_EQ(picture_.span().end_ns, 7000);
}

TEST_F(RequestLanes, AsColumnsOfAWindow) {
  const Json all = picture_.window(picture_.span(), 6600, {});
  EXPECT_EQ(all["in_window"], 3);
  EXPECT_EQ(all["rows"]["name"], Json({"a", "b", "c"}));
  EXPECT_EQ(all["rows"]["arrival_ns"], Json({600, 2100, 4600}));  // from the first arrival on
  EXPECT_EQ(all["rows"]["client"][0]["ttft_ns"], 2900);
  EXPECT_TRUE(all["rows"]["client"][1].is_null());
  EXPECT_EQ(all["parts"]["begin"][0], 0);
  // Queued, prefill, preempted.
  EXPECT_EQ(all["rows"]["in_states"][1], Json({{1, 500, 0}, {3, 1500, 2}, {6, 900, 0}}));
  EXPECT_EQ(all["rows"]["from_ns"], Json({0, 2100, 4600}));
  EXPECT_EQ(all["rows"]["to_ns"], Json({3900, 5100, 6600}));
  EXPECT_EQ(all["parts"]["request"].size(), 11U);
  const Json late = picture_.window({6500, 6600}, 100, {});
  EXPECT_EQ(late["rows"]["name"], Json({"c"}));
  EXPECT_EQ(late["parts"]["state"].size(), 1U);
  EXPECT_EQ(late["rows"]["in_states"][0].size(), 3U);  // of all of it
  // Where not all fit, the one that failed is there.
  const Json few = picture_.window(picture_.span(), 100, {.requests = 4, .parts = 30000, .member_rows = 0});
  EXPECT_EQ(few["rows"]["name"].size(), 3U);
  const Json one = picture_.window(picture_.span(), 100, {.requests = 2, .parts = 2, .member_rows = 0});
  EXPECT_EQ(one["rows"]["name"].size(), 2U);
  EXPECT_EQ(one["in_window"], 3);
  EXPECT_GT(one["pixel_ns"], 66);
}

TEST_F(RequestLanes, CurvesDistributionsAndMembers) {
  const Json all = picture_.overview(*run_, {}).value();
  std::map<std::string, Json> curves;
  for (const Json& curve : all["curves"]) curves[curve["name"]] = curve;
  const auto highest = [&](const char* name) {
    double most = 0;
    for (const Json& value : curves.at(name)["high"]) most = std::max(most, value.get<double>());
    return most;
  };
  EXPECT_EQ(highest("waiting"), 1);
  EXPECT_EQ(highest("running"), 2);
  EXPECT_EQ(highest("waiting or running"), 1);  // c
  EXPECT_EQ(highest("KV cache in use"), 0.75);
  double tokens = 0;  // of prompts: 8, 4 and the 5 that were computed again
  const Json& prompts = curves.at("tokens of prompts");
  const double bin_s = (prompts["ts"][1].get<double>() - prompts["ts"][0].get<double>()) * 1e-9;
  for (const Json& value : prompts["high"]) tokens += value.get<double>() * bin_s;
  EXPECT_NEAR(tokens, 17, 0.01);
  const Json& ttft = all["distributions"][0];
  EXPECT_EQ(ttft["source"], "server");
  EXPECT_EQ(ttft["ns"], Json({1500, 2000}));
  EXPECT_EQ(ttft["share"], Json({0.5, 1.0}));
  EXPECT_EQ(all["members"]["requests"], Json({1, 2}));
  const Json& columns = all["members"]["columns"];
  EXPECT_EQ(columns["begin_ns"][0], 1600);
  std::int64_t of_a = 0;
  for (std::size_t i = 0; i < columns["request_id"].size(); ++i)
    if (columns["request_id"][i] == 1) of_a += columns["time_ns"][i].get<std::int64_t>();
  EXPECT_EQ(of_a, all["rows"]["time_ns"][0]);
  // Room for the members of one request's steps only.
  const Json few = picture_.overview(*run_, {.requests = 2000, .parts = 30000, .member_rows = 3}).value();
  EXPECT_LE(few["members"]["columns"]["step_id"].size(), 3U);
}

}  // namespace
}  // namespace llmprof::pictures
