#include "record/control/control.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/file.h"
#include "base/json.h"
#include "record/run/capture.h"

namespace llmprof::record {
namespace {

using testing::HasSubstr;

TEST(Stretches, AddUpWhatLiesBeforeNow) {
  Stretches stretches;
  EXPECT_FALSE(stretches.switch_at(5, false));  // it is off
  EXPECT_TRUE(stretches.switch_at(10, true));
  EXPECT_FALSE(stretches.switch_at(12, true));
  EXPECT_TRUE(stretches.switch_at(30, false));
  EXPECT_TRUE(stretches.switch_at(100, true));  // 70 later
  EXPECT_EQ(stretches.count(), 2u);
  EXPECT_TRUE(stretches.is_on());
  EXPECT_EQ(stretches.total_ns(5), 0);
  EXPECT_EQ(stretches.total_ns(25), 15);   // 10 to 25
  EXPECT_EQ(stretches.total_ns(50), 20);   // 10 to 30
  EXPECT_EQ(stretches.total_ns(107), 27);  // and 100 to 107
}

class ControlTest : public testing::Test {
 protected:
  ControlTest() {
    char name[] = "/tmp/llmprof-control-XXXXXX";
    folder_ = ::mkdtemp(name);
  }
  ~ControlTest() override { std::filesystem::remove_all(folder_); }
  Control::Options options(bool start_stopped) {
    return {folder_ + "/socket", folder_, start_stopped, 1000, [] { return Result<std::string>("/a/run"); }};
  }
  base::Json ask(const std::string& command) {
    const auto answer = ask_control(folder_ + "/socket", command);
    EXPECT_TRUE(answer) << (answer ? "" : answer.error().message);
    return answer ? base::Json::parse(*answer) : base::Json();
  }
  std::vector<std::string> lines() const {
    std::vector<std::string> result;
    std::ifstream file(folder_ + "/" + kControlFile);
    for (std::string line; std::getline(file, line);) result.push_back(line);
    return result;
  }
  std::string folder_;
};

TEST_F(ControlTest, SwitchesByLinesInTheFile) {
  auto control = Control::open(options(true));
  ASSERT_TRUE(control) << control.error().message;
  EXPECT_EQ(lines().size(), 0u);
  EXPECT_EQ(ask("status")["recording"], false);
  EXPECT_EQ(ask("stop")["ok"], false);
  EXPECT_EQ(ask("start")["recording"], true);
  EXPECT_EQ(ask("start")["ok"], false);
  const base::Json stopped = ask("stop");
  EXPECT_EQ(stopped["recording"], false);
  EXPECT_EQ(stopped["stretches"], 1);
  ASSERT_EQ(lines().size(), 2u);
  EXPECT_THAT(lines()[0], testing::MatchesRegex("[0-9]+ on"));
  EXPECT_THAT(lines()[1], testing::MatchesRegex("[0-9]+ off"));
  EXPECT_LT(std::stoll(lines()[0]), std::stoll(lines()[1]));
  EXPECT_EQ(ask("dump")["run"], "/a/run");
  EXPECT_THAT(ask("begin").dump(), HasSubstr("'begin' is not start, stop, status or dump"));
  EXPECT_THAT((*control)->summary(std::stoll(lines()[1])), HasSubstr("switched on once, "));
}

TEST_F(ControlTest, OnFromTheBeginning) {
  auto control = Control::open(options(false));
  ASSERT_TRUE(control);
  EXPECT_THAT(lines(), testing::ElementsAre("1000 on"));
  EXPECT_EQ(ask("status")["recording"], true);
  EXPECT_THAT(log_names(folder_), testing::Not(testing::Contains(kControlFile)));  // it is no log
}

TEST_F(ControlTest, IsTheOwnersAloneAndGoneAfterwards) {
  {
    auto control = Control::open(options(true));
    ASSERT_TRUE(control);
    struct stat found {};
    ASSERT_EQ(::stat((folder_ + "/socket").c_str(), &found), 0);
    EXPECT_EQ(found.st_mode & 0777u, 0600u);
    const auto second = Control::open(options(true));
    ASSERT_FALSE(second);
    EXPECT_THAT(second.error().message, HasSubstr("belongs to another recording"));
    EXPECT_EQ(ask("status")["ok"], true);
  }
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/socket"));
  EXPECT_FALSE(ask_control(folder_ + "/socket", "status"));
}

TEST_F(ControlTest, WhatIsInTheWay) {
  std::ofstream(folder_ + "/socket") << "a letter";
  EXPECT_FALSE(Control::open(options(true)));
  EXPECT_TRUE(std::filesystem::exists(folder_ + "/socket"));
  Control::Options far = options(true);
  far.socket = folder_ + "/" + std::string(120, 'x');
  const auto refused = Control::open(far);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("107 bytes"));
  far.socket = folder_ + "/no/such/folder";
  EXPECT_FALSE(Control::open(far));
}

TEST_F(ControlTest, ASocketThatNobodyListensAtIsReplaced) {
  { const auto first = Control::open(options(true)); }
  const std::string path = folder_ + "/socket";
  ASSERT_EQ(::mknod(path.c_str(), S_IFSOCK | 0600, 0), 0);
  EXPECT_TRUE(Control::open(options(true)));
}

}  // namespace
}  // namespace llmprof::record
