// What the child of an import cannot do. Every case runs in a real child; its answer comes through the pipe.
#include "importers/sandbox.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <thread>
#include <vector>

namespace llmprof::importers {
namespace {

using testing::HasSubstr;

struct Outcome {
  std::string said;
  std::string error;  // "" it ended in order
};

Outcome outcome(const std::function<void(const Child::Ends&)>& work, ChildLimits limits = {},
                std::vector<int> keep = {}) {
  auto child = Child::start("x.json", work, keep, limits);
  EXPECT_TRUE(child);
  child->go();
  Outcome out;
  while (true) {
    pollfd wait{child->output(), POLLIN, 0};
    ::poll(&wait, 1, 10'000);
    char buffer[4096];
    const ssize_t got = ::read(child->output(), buffer, sizeof buffer);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) continue;
    if (got <= 0) break;
    out.said.append(buffer, static_cast<std::size_t>(got));
  }
  const auto ended = child->wait();
  if (!ended) out.error = ended.error().message;
  return out;
}

void say(const Child::Ends& ends, const std::string& text) { (void)!::write(ends.output, text.data(), text.size()); }

class SandboxTest : public testing::Test {
  void SetUp() override {
    if (!sandbox_is_complete()) GTEST_SKIP() << "sanitizers run without limits";
  }
};

TEST_F(SandboxTest, OpensTheFileItMayAndNoOther) {
  const std::string mine = testing::TempDir() + "/sandbox-mine", other = testing::TempDir() + "/sandbox-other";
  std::ofstream(mine) << "mine";
  std::ofstream(other) << "other";
  const auto work = [&](const Child::Ends& ends) {
    std::string answers;
    const auto tried = [&](const std::string& path, int flags) {
      const int file = ::open(path.c_str(), flags);
      answers += file >= 0 ? "opened " : "refused ";
      if (file >= 0) ::close(file);
    };
    tried(mine, O_RDONLY);
    tried(mine, O_RDWR);
    tried(mine, O_WRONLY | O_TRUNC);
    tried(other, O_RDONLY);
    tried("/etc/passwd", O_RDONLY);
    tried(mine + "-new", O_RDWR | O_CREAT);
    say(ends, answers);
  };
  const Outcome may = outcome(work, {.readable_file = mine});
  if (may.error.find("sandbox") != std::string::npos) GTEST_SKIP() << "this kernel has no Landlock";
  EXPECT_EQ(may.said, "opened refused refused refused refused refused ");
  EXPECT_EQ(outcome(work).said, "refused refused refused refused refused refused ");
}

TEST_F(SandboxTest, AHonestReaderWorks) {
  const int input = ::open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
  const Outcome out = outcome(
      [&](const Child::Ends& ends) {
        if (!ends.wait_for_go()) return;
        char magic[4];
        if (::pread(input, magic, 4, 0) != 4) return;
        std::vector<std::thread> threads;
        std::atomic<int> sum = 0;
        for (int i = 0; i < 4; ++i)
          threads.emplace_back([&] { sum += static_cast<int>(std::string(1 << 20, 'x').size() >> 20); });
        for (auto& thread : threads) thread.join();
        struct stat status {};
        say(ends,
            std::string(magic + 1, 3) + " " + std::to_string(sum) + (::fstat(input, &status) == 0 ? " stat" : ""));
      },
      {}, {input});
  ::close(input);
  EXPECT_EQ(out.said, "ELF 4 stat");
  EXPECT_EQ(out.error, "");
}

TEST_F(SandboxTest, ItCannotOpenAFile) {
  const Outcome out = outcome([](const Child::Ends& ends) {
    const int descriptor = ::open("/etc/passwd", O_RDONLY);
    say(ends, descriptor < 0 && errno == EPERM ? "refused" : "opened");
    say(ends, ::unlink("/nowhere/x") < 0 && errno == EPERM ? " refused" : " unlinked");
  });
  EXPECT_EQ(out.said, "refused refused");
  EXPECT_EQ(out.error, "");
}

TEST_F(SandboxTest, ItCannotConnect) {
  const Outcome out = outcome([](const Child::Ends& ends) {
    ::socket(AF_INET, SOCK_STREAM, 0);
    say(ends, "alive");
  });
  EXPECT_EQ(out.said, "");
  EXPECT_THAT(out.error, HasSubstr("x.json: the reader of the file was stopped: it made a system call"));
}

TEST_F(SandboxTest, ItCannotStartAProgramOrAProcess) {
  const Outcome program = outcome([](const Child::Ends& ends) {
    ::execl("/bin/true", "true", nullptr);
    say(ends, "alive");
  });
  EXPECT_EQ(program.said, "");
  EXPECT_THAT(program.error, HasSubstr("system call"));
  const Outcome process = outcome([](const Child::Ends& ends) {
    if (::fork() == 0) ::_exit(0);
    say(ends, "alive");
  });
  EXPECT_EQ(process.said, "");
  EXPECT_THAT(process.error, HasSubstr("system call"));
}

TEST_F(SandboxTest, ItCannotMakeCode) {
  const Outcome out = outcome([](const Child::Ends& ends) {
    void* page = ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    say(ends, page == MAP_FAILED ? "refused" : "mapped");
    page = ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    say(ends, ::mprotect(page, 4096, PROT_READ | PROT_EXEC) != 0 ? " refused" : " made");
  });
  EXPECT_EQ(out.said, "refused refused");
}

TEST_F(SandboxTest, ItCannotSignalOthers) {
  const pid_t parent = ::getpid();
  const Outcome out = outcome(
      [=](const Child::Ends& ends) { say(ends, ::kill(parent, 0) != 0 && errno == EPERM ? "refused" : "sent"); });
  EXPECT_EQ(out.said, "refused");
}

TEST_F(SandboxTest, ItHasNoOtherDescriptor) {
  const int secret = ::open("/proc/self/exe", O_RDONLY);  // not close-on-exec, not kept
  const Outcome out = outcome([=](const Child::Ends& ends) {
    int open = 0;
    char byte;
    for (int descriptor = 0; descriptor < 64; ++descriptor) {
      const bool ours = descriptor == ends.output || descriptor == ends.signal;
      if (!ours && (::pread(descriptor, &byte, 1, 0) >= 0 || errno != EBADF)) ++open;
    }
    say(ends, std::to_string(open));
  });
  ::close(secret);
  EXPECT_EQ(out.said, "0");
}

TEST_F(SandboxTest, MemoryHasALimit) {
  ChildLimits limits;
  limits.memory_bytes = 64 << 20;
  const Outcome out = outcome(
      [](const Child::Ends& ends) {
        std::vector<std::string> kept;
        for (int i = 0; i < 1000; ++i) kept.emplace_back(std::size_t{1} << 20, 'x');
        say(ends, std::to_string(kept.size()));
      },
      limits);
  EXPECT_EQ(out.said, "");
  EXPECT_THAT(out.error, HasSubstr("more than 67.1 MB of memory"));
}

TEST_F(SandboxTest, CpuTimeHasALimit) {
  ChildLimits limits;
  limits.cpu_seconds = 1;
  const Outcome out = outcome(
      [](const Child::Ends&) {
        std::atomic<std::uint64_t> n = 0;
        while (true) ++n;
      },
      limits);
  EXPECT_THAT(out.error, HasSubstr("more than 1 s of CPU time"));
}

TEST_F(SandboxTest, FilesHaveALimit) {
  const int file = ::open(testing::TempDir().c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  ASSERT_GE(file, 0);
  ChildLimits limits;
  limits.file_bytes = 1 << 20;
  const Outcome out = outcome(
      [=](const Child::Ends& ends) {
        const std::string text(1 << 19, 'x');
        for (int i = 0; i < 8; ++i) (void)!::write(file, text.data(), text.size());
        say(ends, "alive");
      },
      limits, {file});
  ::close(file);
  EXPECT_EQ(out.said, "");
  EXPECT_THAT(out.error, HasSubstr("it wrote more than 1.05 MB"));
}

TEST_F(SandboxTest, ACrashIsAnErrorWithWords) {
  const Outcome segfault = outcome([](const Child::Ends&) { ::raise(SIGSEGV); });
  EXPECT_THAT(segfault.error, HasSubstr("signal 11 (Segmentation fault)"));
  const Outcome aborted = outcome([](const Child::Ends&) { std::abort(); });
  EXPECT_THAT(aborted.error, HasSubstr("signal 6"));
  const Outcome status = outcome([](const Child::Ends&) { ::_exit(7); });
  EXPECT_THAT(status.error, HasSubstr("exit status 7"));
}

TEST_F(SandboxTest, AChildThatNobodyStartsEndsWithItsOwner) {
  std::vector<Child> children;
  for (int i = 0; i < 3; ++i) {
    auto child = Child::start("x", [](const Child::Ends& ends) { ends.wait_for_go(); }, {}, {});
    ASSERT_TRUE(child);
    children.push_back(std::move(*child));
  }
  children.clear();  // kills and reaps: no child is left
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1);
  EXPECT_EQ(errno, ECHILD);
}

}  // namespace
}  // namespace llmprof::importers
