#include "host/host_log.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

namespace llmprof::host {
namespace {

std::string fresh_path(const char* name) {
  const std::string path = testing::TempDir() + "/" + std::to_string(::getpid()) + name;
  std::filesystem::remove(path);
  return path;
}

TEST(HostLog, NeverReplacesAFile) {
  const std::string path = fresh_path("twice.log");
  ASSERT_TRUE(HostLog::create(path));
  EXPECT_FALSE(HostLog::create(path));
}

TEST(HostLog, GivesANameOneId) {
  auto log = HostLog::create(fresh_path("names.log"));
  ASSERT_TRUE(log);
  const wire::StringId first = log->name("malloc");
  EXPECT_NE(first, 0u);
  EXPECT_EQ(log->name("malloc"), first);
  EXPECT_NE(log->name("free"), first);
  EXPECT_EQ(log->name(""), 0u);
}

TEST(HostLog, IsOnDiskAfterAFlush) {
  const std::string path = fresh_path("flushed.log");
  auto log = HostLog::create(path);
  ASSERT_TRUE(log);
  const wire::SampleRecord sample = {.ts_ns = 5, .weight_ns = 1, .pid = 2, .tid = 3, .stack = 0, .truncated = 1};
  for (int i = 0; i < 10'000; ++i) log->add(wire::RecordKind::kSample).sample = sample;
  ASSERT_TRUE(log->flush());
  EXPECT_EQ(log->bytes(), std::filesystem::file_size(path));
  EXPECT_GT(log->bytes(), sizeof(wire::FileHeader));
}

}  // namespace
}  // namespace llmprof::host
