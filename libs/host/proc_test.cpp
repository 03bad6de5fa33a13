#include "host/proc.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>

#include "host/pace.h"

namespace llmprof::host {
namespace {

using testing::Contains;

std::string stat_text(const std::string& name, const std::string& state, const std::string& addresses) {
  return "4711 (" + name + ") " + state +
         " 17 5 6 0 -1 4194304 100 7 3 0 250 50 0 0 20 0 4 0 1218032 3133440 380 999 " + addresses + " 0 0 0 0\n";
}

TEST(ProcStat, ReadsTheFieldsBehindAnyName) {
  for (const char* name : {"cat", "a b", ") R 1 (", "((", ""}) {
    const auto stat = parse_stat(stat_text(name, "S", "1000 2000 3000"));
    ASSERT_TRUE(stat) << name;
    EXPECT_EQ(stat->pid, 4711);
    EXPECT_EQ(stat->state, 'S');
    EXPECT_EQ(stat->parent, 17);
    EXPECT_EQ(stat->minor_faults, 100u);
    EXPECT_EQ(stat->children_minor_faults, 7u);
    EXPECT_EQ(stat->major_faults, 3u);
    EXPECT_EQ(stat->user_ns, 250ull * 1'000'000'000 / static_cast<unsigned>(::sysconf(_SC_CLK_TCK)));
    EXPECT_EQ(stat->system_ns, 50ull * 1'000'000'000 / static_cast<unsigned>(::sysconf(_SC_CLK_TCK)));
    EXPECT_EQ(stat->threads, 4u);
    EXPECT_EQ(stat->start_ticks, 1218032u);
    EXPECT_EQ(stat->rss_bytes, 380u * static_cast<unsigned>(::sysconf(_SC_PAGESIZE)));
  }
  for (const char* text : {"", "4711", "4711 (cat) R 1 2 3", "4711 (cat R 1 2"}) EXPECT_FALSE(parse_stat(text)) << text;
}

TEST(ProcStat, ResidentMemoryIsTheSecondNumberOfStatm) {
  EXPECT_EQ(parse_statm("765 440 412 5 0 90 0\n"), 440u * static_cast<unsigned>(::sysconf(_SC_PAGESIZE)));
  EXPECT_EQ(parse_statm("0 0 0 0 0 0 0\n"), 0u);  // ended
  EXPECT_FALSE(parse_statm(""));
}

TEST(ProcStat, AnImageIsToldByItsAddressesOrElseItsName) {
  const auto image = [](const std::string& name, const std::string& addresses) {
    return parse_stat(stat_text(name, "R", addresses))->image;
  };
  EXPECT_EQ(image("sh", "1000 2000 3000"), image("renamed", "1000 2000 3000"));
  EXPECT_NE(image("sh", "1000 2000 3000"), image("sh", "1000 2000 4000"));
  EXPECT_EQ(image("sh", "1 1 0"), image("sh", "1 1 0"));  // addresses are not shown to us
  EXPECT_NE(image("sh", "1 1 0"), image("ls", "1 1 0"));
  EXPECT_EQ(image("sh", "0 0 0"), 0u);  // it is ending
}

TEST(ProcStat, AProcessEndedWhenItsLastThreadDid) {
  EXPECT_FALSE(parse_stat(stat_text("sh", "S", "1 1 1"))->ended());
  EXPECT_FALSE(parse_stat(stat_text("sh", "Z", "0 0 0"))->ended());  // 4 threads: only the first ended
  ProcStat alone = *parse_stat(stat_text("sh", "Z", "0 0 0"));
  alone.threads = 1;
  EXPECT_TRUE(alone.ended());
}

TEST(Proc, ReadsThisProcess) {
  const pid_t self = ::getpid();
  const auto stat = read_stat(self);
  ASSERT_TRUE(stat);
  EXPECT_EQ(stat->parent, ::getppid());
  EXPECT_GT(stat->rss_bytes, 100'000u);
  EXPECT_NE(stat->image, 0u);
  const auto status = read_status(self);
  ASSERT_TRUE(status);
  EXPECT_EQ(status->process, self);
  EXPECT_GE(status->peak_rss_bytes + 1'000'000, stat->rss_bytes);  // both are rounded by the kernel
  EXPECT_THAT(processes(), Contains(self));
  EXPECT_THAT(threads(self), Contains(self));
  EXPECT_NE(executable(self).find("host_test"), std::string::npos);
  EXPECT_NE(arguments(self).find("host_test"), std::string::npos);
  const char* path = std::getenv("PATH");
  ASSERT_NE(path, nullptr);
  EXPECT_TRUE(has_variable(self, std::string("PATH=") + path));
  EXPECT_FALSE(has_variable(self, "PATH=" + std::string(path).substr(1)));
}

TEST(Proc, TellsThreadsFromProcesses) {
  pid_t thread_id = 0;
  std::thread([&] {
    thread_id = ::gettid();
    const auto status = read_status(thread_id);
    ASSERT_TRUE(status);
    EXPECT_EQ(status->process, ::getpid());
    EXPECT_TRUE(read_status(::getpid(), thread_id));
  }).join();
  EXPECT_NE(thread_id, ::getpid());
}

TEST(Proc, NewestIdMovesWhenAProcessIsMade) {
  const pid_t before = newest_id();
  const pid_t child = ::fork();
  if (child == 0) ::_exit(0);
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  EXPECT_NE(newest_id(), before);
}

TEST(Proc, AStatFileNamesOneProcessForEver) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::pause();
    ::_exit(0);
  }
  const StatFile file(child);
  ASSERT_TRUE(file.is_open());
  EXPECT_EQ(file.read()->pid, child);
  ::kill(child, SIGKILL);
  siginfo_t info{};
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT), 0);
  EXPECT_TRUE(file.read()->ended());  // its numbers can be read until it is collected
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  EXPECT_FALSE(file.read());
}

TEST(ProcIo, ReadsBytesOfStorage) {
  const auto io = parse_io(
      "rchar: 1\nwchar: 2\nsyscr: 3\nsyscw: 4\nread_bytes: 4096\nwrite_bytes: 8192\n"
      "cancelled_write_bytes: 5\n");
  ASSERT_TRUE(io);
  EXPECT_EQ(io->read_bytes, 4096u);
  EXPECT_EQ(io->written_bytes, 8192u);
  EXPECT_FALSE(parse_io(""));
}

TEST(Proc, WaitForACore) {
  EXPECT_EQ(parse_schedstat("1234567 89012 34\n"), 89012u);
  EXPECT_FALSE(parse_schedstat(""));
}

TEST(Proc, TimeOfTheMachine) {
  const auto time = parse_machine_time("cpu  10 20 30 400 5 6 7 8 9 0\ncpu0 1 1 1 1 1 1 1 1 1 1\n");
  ASSERT_TRUE(time);
  EXPECT_EQ(time->busy, 10u + 20 + 30 + 6 + 7);
  EXPECT_EQ(time->idle, 405u);
  EXPECT_EQ(time->stolen, 8u);
  EXPECT_FALSE(parse_machine_time("cpu  1 2 3"));
  EXPECT_FALSE(parse_machine_time("intr 1"));
  EXPECT_TRUE(read_machine_time());
}

TEST(Pace, KeepsItsPeriodWhileCheap) {
  Pace pace(20'000'000, 0.01);  // 20 ms, at most 1 % of a core
  pace.took(1'000'000'000, 100'000);
  EXPECT_EQ(pace.period_ns(), 20'000'000u);
  EXPECT_FALSE(pace.is_due(1'005'000'000));
  EXPECT_TRUE(pace.is_due(1'020'000'000));
}

TEST(Pace, SlowsDownWhenDear) {
  Pace pace(20'000'000, 0.01);
  pace.took(1'000'000'000, 1'000'000);  // 1 ms is 1 % of 100 ms
  EXPECT_EQ(pace.period_ns(), 100'000'000u);
  pace.took(2'000'000'000, 0);
  EXPECT_EQ(pace.period_ns(), 87'500'000u);  // 7/8 of the old cost
  Pace bounded(20'000'000, 0.01, 50'000'000);
  bounded.took(1'000'000'000, 1'000'000);
  EXPECT_EQ(bounded.period_ns(), 50'000'000u);
}

}  // namespace
}  // namespace llmprof::host
