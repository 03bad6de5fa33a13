#include "record/supervise.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <pty.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <thread>

#include "base/file.h"
#include "record/injection.h"
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
  for (const int signal : {SIGINT, SIGQUIT}) ::signal(signal, SIG_DFL);  // a shell ignores them for background jobs
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

}  // namespace
}  // namespace llmprof::record
