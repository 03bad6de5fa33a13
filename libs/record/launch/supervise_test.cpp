#include "record/launch/launch.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <pty.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <thread>

#include "base/file.h"
#include "record/launch/injection.h"
#include "record/testing/folder.h"

namespace llmprof::record {
namespace {

// Puts a file in the place of a standard descriptor.
class Redirected {
 public:
  Redirected(int descriptor, const std::string& path, int flags) : descriptor_(descriptor), saved_(::dup(descriptor)) {
    const int fd = ::open(path.c_str(), flags, 0600);
    ::dup2(fd, descriptor);
    ::close(fd);
  }
  ~Redirected() {
    ::dup2(saved_, descriptor_);
    ::close(saved_);
  }

 private:
  int descriptor_;
  int saved_;
};

Launch launch_of(std::vector<std::string> words) {
  words.insert(words.begin(), "program");
  return {PROGRAM, std::move(words), own_environment()};
}

std::string output_of(const Launch& launch) {
  const TestFolder folder;
  {
    std::fflush(stdout);
    const Redirected out(STDOUT_FILENO, folder / "out", O_WRONLY | O_CREAT);
    EXPECT_TRUE(launch_and_wait(launch, {}));
  }
  return base::read_file(folder / "out", 1 << 20).value();
}

TEST(Supervise, ReturnsTheStatusOfTheProgram) {
  for (const int status : {0, 3, 255}) {
    const auto ended = launch_and_wait(launch_of({"exit", std::to_string(status)}), {});
    ASSERT_TRUE(ended);
    EXPECT_EQ(ended->exit_status, status);
    EXPECT_EQ(ended->signal, 0);
  }
  for (const int signal : {SIGTERM, SIGKILL, SIGSEGV}) {
    const auto ended = launch_and_wait(launch_of({"signal", std::to_string(signal)}), {});
    ASSERT_TRUE(ended);
    EXPECT_EQ(ended->exit_status, 128 + signal);
    EXPECT_EQ(ended->signal, signal);
  }
}

TEST(Supervise, SaysWhyAProgramDidNotStart) {
  const TestFolder folder;
  Launch launch = launch_of({"exit", "0"});
  launch.path = folder / "nothing";
  EXPECT_EQ(launch_and_wait(launch, {}).error().code, ErrorCode::kNotFound);
  launch.path = folder.write("text", "", 0644);
  EXPECT_EQ(launch_and_wait(launch, {}).error().code, ErrorCode::kPermission);
}

TEST(Supervise, HandsArgumentsAndEnvironmentThrough) {
  EXPECT_EQ(output_of(launch_of({"arguments", "two words", "", "ü", "a\nb"})),
            "program\narguments\ntwo words\n\nü\na\nb\n");
  Launch launch = launch_of({"variable", "LLMPROF_TEST"});
  launch.environment = {"LLMPROF_TEST=a b=c"};
  EXPECT_EQ(output_of(launch), "a b=c\n");
}

TEST(Supervise, RunsScripts) {
  const TestFolder folder;
  Launch launch = launch_of({});
  launch.path = folder.write("script", "#!/bin/sh\necho with: $1\n", 0755);
  launch.arguments = {"script", "x y"};
  EXPECT_EQ(output_of(launch), "with: x y\n");
  launch.path = folder.write("bare", "echo without: $1\n", 0755);  // as a shell does: given to sh
  EXPECT_EQ(output_of(launch), "without: x y\n");
}

TEST(Supervise, LeavesStdinToTheProgram) {
  const TestFolder folder;
  folder.write("in", "first\nlast without newline");
  const Redirected in(STDIN_FILENO, folder / "in", O_RDONLY);
  EXPECT_EQ(output_of(launch_of({"copy"})), "first\nlast without newline");
}

TEST(Supervise, TheProgramInheritsNoBlockedOrIgnoredSignal) {
  // A shell ignores the first two for background jobs, nohup the third.
  for (const int signal : {SIGINT, SIGQUIT, SIGHUP}) ::signal(signal, SIG_DFL);
  EXPECT_EQ(output_of(launch_of({"blocked"})), "");
  struct sigaction ignore {};
  struct sigaction before {};
  ignore.sa_handler = SIG_IGN;
  ::sigaction(SIGHUP, &ignore, &before);  // as nohup does: kept
  EXPECT_EQ(output_of(launch_of({"blocked"})), "ignored 1\n");
  ::sigaction(SIGHUP, &before, nullptr);
}

TEST(Supervise, SurvivesAnIgnoredChildSignal) {
  const auto before = ::signal(SIGCHLD, SIG_IGN);  // inherited from some parent: waitpid would lose the status
  const auto ended = launch_and_wait(launch_of({"exit", "5"}), {});
  EXPECT_EQ(::signal(SIGCHLD, before), SIG_IGN);
  ASSERT_TRUE(ended);
  EXPECT_EQ(ended->exit_status, 5);
}

TEST(Supervise, PollsWhileTheProgramRuns) {
  int polls = 0;
  pid_t started = 0;
  Watch watch;
  watch.every = std::chrono::milliseconds(20);
  watch.started = [&](pid_t pid) { started = pid; };
  watch.poll = [&] { ++polls; };
  const auto ended = launch_and_wait(launch_of({"sleep", "1"}), watch);
  ASSERT_TRUE(ended);
  EXPECT_EQ(started, ended->pid);
  EXPECT_GE(polls, 2);
}

char state_of(pid_t pid) {
  const std::string stat = base::read_file("/proc/" + std::to_string(pid) + "/stat", 4096).value();
  const std::size_t end = stat.rfind(')');
  return end == std::string::npos ? '?' : stat[end + 2];
}

TEST(Supervise, HoldsTheProgramBackUntilTheRecorderIsReady) {
  const TestFolder folder;
  Launch launch = launch_of({});
  launch.path = folder.write("script", "#!/bin/sh\n: > $1\n", 0755);
  launch.arguments = {"script", folder / "ran"};
  pid_t forked = 0, started = 0, ended = 0;
  Watch watch;
  watch.forked = [&](pid_t pid) {
    forked = pid;
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    EXPECT_FALSE(base::is_file(folder / "ran"));
    EXPECT_EQ(started, 0);
  };
  watch.started = [&](pid_t pid) { started = pid; };
  watch.ended = [&](pid_t pid) {
    ended = pid;
    EXPECT_EQ(state_of(pid), 'Z');  // its last numbers can still be read
  };
  ASSERT_TRUE(launch_and_wait(launch, watch));
  EXPECT_TRUE(base::is_file(folder / "ran"));
  EXPECT_GT(forked, 0);
  EXPECT_EQ(started, forked);
  EXPECT_EQ(ended, forked);
}

bool wait_for_text(const std::string& path, const std::string& text) {
  for (int i = 0; i < 600; ++i) {
    const auto found = base::read_file(path, 100);
    if (found && *found == text) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return false;
}

// A supervisor on a terminal of its own, whose program counts its SIGINTs.
struct Terminal {
  int master = -1;
  pid_t supervisor = 0;
};
Terminal supervise_on_terminal(const std::string& count_file) {
  Terminal terminal;
  terminal.supervisor = ::forkpty(&terminal.master, nullptr, nullptr, nullptr);
  if (terminal.supervisor == 0) {
    const auto ended = launch_and_wait(launch_of({"count-interrupts", count_file}), {});
    ::_exit(ended ? ended->exit_status : 99);
  }
  return terminal;
}

TEST(Supervise, CtrlCReachesTheProgramOnce) {
  const TestFolder folder;
  const Terminal terminal = supervise_on_terminal(folder / "count");
  ASSERT_TRUE(wait_for_text(folder / "count", "ready"));
  ASSERT_EQ(::write(terminal.master, "\x03", 1), 1);
  int status = 0;
  ASSERT_EQ(::waitpid(terminal.supervisor, &status, 0), terminal.supervisor);
  ::close(terminal.master);
  EXPECT_EQ(status, 0);  // the supervisor lived on
  EXPECT_EQ(base::read_file(folder / "count", 100).value(), "1");
}

TEST(Supervise, ASignalForTheSupervisorIsPassedOnOnce) {
  const TestFolder folder;
  const Terminal terminal = supervise_on_terminal(folder / "count");
  ASSERT_TRUE(wait_for_text(folder / "count", "ready"));
  ASSERT_EQ(::kill(terminal.supervisor, SIGINT), 0);
  int status = 0;
  ASSERT_EQ(::waitpid(terminal.supervisor, &status, 0), terminal.supervisor);
  ::close(terminal.master);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(base::read_file(folder / "count", 100).value(), "1");
}

TEST(Supervise, ADyingRecorderLetsTheProgramGo) {
  const TestFolder folder;
  Launch launch = launch_of({});
  launch.path = folder.write("script", "#!/bin/sh\nprintf ran > $1\n", 0755);
  launch.arguments = {"script", folder / "ran"};
  const pid_t recorder = ::fork();
  if (recorder == 0) {
    Watch watch;
    watch.forked = [](pid_t) { ::kill(::getpid(), SIGKILL); };
    (void)launch_and_wait(launch, watch);
    ::_exit(99);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(recorder, &status, 0), recorder);
  EXPECT_TRUE(WIFSIGNALED(status));
  EXPECT_TRUE(wait_for_text(folder / "ran", "ran"));
}

TEST(Supervise, ReturnsWhatTheProgramUsed) {
  const auto ended = launch_and_wait(launch_of({"exit", "0"}), {});
  ASSERT_TRUE(ended);
  EXPECT_GT(ended->used.ru_minflt, 0);
  EXPECT_GT(ended->used.ru_maxrss, 0);
}

}  // namespace
}  // namespace llmprof::record
