#include "load/search.h"

#include <gtest/gtest.h>

#include <vector>

namespace llmprof::load {
namespace {

struct Tried {
  RateFound found;
  std::vector<double> rates;
};

// A server that keeps its limits up to `limit`, and a client that keeps up to `client`.
Tried tried(double limit, double client, SearchOptions options = {}) {
  Tried out;
  const auto found = find_rate(options, [&](double rate) -> Result<Probe> {
    out.rates.push_back(rate);
    return Probe{rate, rate <= limit, rate <= client, rate, false};
  });
  out.found = *found;
  return out;
}

TEST(FindRate, DoublesThenHalvesTheGap) {
  const Tried t = tried(10, 1e9);
  EXPECT_EQ(std::vector<double>(t.rates.begin(), t.rates.begin() + 5), (std::vector<double>{1, 2, 4, 8, 16}));
  ASSERT_TRUE(t.found.rate);
  EXPECT_LE(*t.found.rate, 10);
  EXPECT_GE(*t.found.rate, 10 / 1.05);
  EXPECT_NE(t.found.why.find("they are not kept"), std::string::npos);
}

TEST(FindRate, GoesDownWhereTheFirstIsTooHigh) {
  const Tried t = tried(0.3, 1e9);
  EXPECT_EQ(t.rates[1], 0.5);
  EXPECT_EQ(t.rates[2], 0.25);
  EXPECT_GE(*t.found.rate, 0.3 / 1.05);
  EXPECT_FALSE(tried(0, 1e9).found.rate);
}

TEST(FindRate, SaysThatTheClientIsTheLimit) {
  const Tried t = tried(50, 50);
  EXPECT_LE(*t.found.rate, 50);
  EXPECT_NE(t.found.why.find("the client did not keep up"), std::string::npos);
  EXPECT_EQ(*tried(1e9, 50, {.most = 100}).found.rate, 64);  // good although the client was late
}

TEST(FindRate, StopsWhereRequestsOnlyWait) {
  const auto found = find_rate({}, [](double rate) -> Result<Probe> { return Probe{rate, true, true, std::min(rate, 3.0), false}; });
  EXPECT_EQ(*found->rate, 8);  // 3 of 8 is less than half
  EXPECT_NE(found->why.find("finished only 3.00 requests/s"), std::string::npos);
}

TEST(FindRate, EndsWhenInterruptedOrTiredOrBroken) {
  const auto interrupted = find_rate({}, [](double rate) -> Result<Probe> { return Probe{rate, true, true, rate, rate >= 4}; });
  EXPECT_TRUE(interrupted->interrupted);
  EXPECT_EQ(*interrupted->rate, 2);
  EXPECT_EQ(tried(10, 1e9, {.most_probes = 3}).found.why, "3 loads were tried");
  EXPECT_FALSE(find_rate({}, [](double) -> Result<Probe> { return Error{ErrorCode::kIo, "gone", ""}; }));
}

}  // namespace
}  // namespace llmprof::load
