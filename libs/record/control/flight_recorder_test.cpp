#include "record/control/flight_recorder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "base/file.h"
#include "record/run/capture.h"
#include "record/testing/folder.h"

namespace llmprof::record {
namespace {

using testing::ElementsAre;

TEST(LogName, SaysWhoseLogItIs) {
  LogName name;
  ASSERT_TRUE(parse_log_name("my-host.example-123-456-7.89.log", name));
  EXPECT_EQ(name.pid, 123);
  EXPECT_EQ(name.start_ticks, 456);
  EXPECT_EQ(name.image, 7);
  EXPECT_EQ(name.segment, 89);
  ASSERT_TRUE(parse_log_name("h-1-2-0.log", name));
  EXPECT_EQ(name.segment, 0);
  for (const char* bad : {"", "recorder.log", "h-1-2-0.off", "h-1-2.log", "h-1-x-0.log", "h-1-2-0.x.log", "-1-2-0.log"})
    EXPECT_FALSE(parse_log_name(bad, name)) << bad;
}

// Process 1 has started before this one could, process `own` is this one: alive.
TEST(Ring, DropsLogsOfProcessesThatAreOverAndTheOldestWhenThereIsTooMuch) {
  TestFolder folder;
  const std::string own = "h-" + std::to_string(::getpid()) + "-" + std::to_string(start_ticks(::getpid())) + "-0";
  const auto write = [&](const std::string& name, std::size_t bytes) { folder.write(name, std::string(bytes, 'x')); };
  write("h-999999999-5-0.4.log", 10);
  write("recorder.log", 10);
  write(own + ".log", 100);
  write(own + ".1.log", 100);
  Ring ring(folder.path(), 50, 1000);
  ring.poll(100);
  ring.poll(150);
  EXPECT_EQ(log_names(folder.path()).size(), 4u);
  ring.poll(151);                // over for 51
  EXPECT_EQ(ring.dropped(), 5);  // logs 0 to 4
  EXPECT_THAT(log_names(folder.path()), ElementsAre(own + ".1.log", own + ".log", "recorder.log"));
  Ring small(folder.path(), 50, 120);
  small.poll(1000);  // 200 bytes: the older of the two goes; its number is in the name of the other
  EXPECT_EQ(small.dropped(), 0);
  EXPECT_THAT(log_names(folder.path()), ElementsAre(own + ".1.log", "recorder.log"));
  Ring tiny(folder.path(), 50, 20);
  tiny.poll(1000);  // what a living process writes into stays
  EXPECT_THAT(log_names(folder.path()), ElementsAre(own + ".1.log", "recorder.log"));
}

}  // namespace
}  // namespace llmprof::record
