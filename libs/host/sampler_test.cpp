#include "host/sampler.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <map>
#include <set>
#include <thread>
#include <vector>

#include "base/file.h"
#include "host/host_log.h"
#include "host/usage.h"
#include "wire/decode.h"

namespace llmprof::host {
namespace {

constexpr const char* kSetting = "LLMPROF_SAMPLER_TEST=here";

struct Log {
  std::map<wire::StringId, std::string> names;
  std::vector<wire::Record> records;

  std::vector<wire::Record> of(wire::RecordKind kind) const {
    std::vector<wire::Record> found;
    for (const wire::Record& record : records) {
      if (record.kind == kind) found.push_back(record);
    }
    return found;
  }
  // File names of the programs that a process executed, in order; of all processes for pid 0.
  std::vector<std::string> images(pid_t pid = 0) const {
    std::vector<std::string> found;
    for (const wire::Record& record : of(wire::RecordKind::kProcess)) {
      if (record.process.ended == 0 && (pid == 0 || record.process.pid == static_cast<std::uint64_t>(pid))) {
        found.push_back(std::filesystem::path(names.at(record.process.executable)).filename());
      }
    }
    return found;
  }
};

Log read_log(const std::string& path) {
  Log log;
  const std::string bytes = base::read_file(path, 1 << 28).value();
  wire::BlockReader blocks({reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()},
                           sizeof(wire::FileHeader));
  std::vector<wire::Record> records(wire::kMaxSectionRecords);
  for (wire::Step step = blocks.next(); step.kind == wire::StepKind::kBlock; step = blocks.next()) {
    wire::SectionReader sections(step.block);
    for (wire::Section section; sections.next(&section);) {
      if (section.kind == 0) {
        wire::StringReader strings(section);
        for (wire::StringDefinition text; strings.next(&text);)
          log.names[text.id] = std::string(text.text, text.length);
      } else if (wire::decode_records(section, records.data())) {
        log.records.insert(log.records.end(), records.begin(), records.begin() + section.count);
      }
    }
  }
  return log;
}

// A process that the sampler watches, and its log.
class Watched {
 public:
  explicit Watched(const std::function<void()>& program) {
    int ends[2];
    EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    pid_ = ::fork();
    if (pid_ == 0) {
      ::close(ends[1]);
      char byte;
      (void)!::read(ends[0], &byte, 1);
      program();
      ::_exit(0);
    }
    ::close(ends[0]);
    path_ = testing::TempDir() + "/sampler" + std::to_string(pid_) + ".log";
    std::filesystem::remove(path_);
    auto sampler = Sampler::create(pid_, {.log_path = path_, .setting = kSetting, .stacks = false});
    EXPECT_TRUE(sampler);
    sampler_ = std::move(*sampler);
    ::close(ends[1]);
    sampler_->start();
  }
  ~Watched() { std::filesystem::remove(path_); }

  pid_t pid() const { return pid_; }
  Log log() const { return read_log(path_); }

  // False if it was not so within a minute.
  bool wait_until(const std::function<bool(const Log&)>& so) const {
    for (int i = 0; i < 1200; ++i) {
      if (so(log())) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
    return false;
  }

  SamplerOutcome end() {
    siginfo_t info{};
    EXPECT_EQ(::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOWAIT), 0);
    sampler_->stop();
    rusage used{};
    EXPECT_EQ(::wait4(pid_, nullptr, 0, &used), pid_);
    return sampler_->finish(used);
  }

 private:
  pid_t pid_ = 0;
  std::string path_;
  std::unique_ptr<Sampler> sampler_;
};

void shell(const std::string& script) {
  const char* environment[] = {"PATH=/usr/bin:/bin", kSetting, nullptr};
  ::execle("/bin/sh", "sh", "-c", script.c_str(), nullptr, environment);
}

std::size_t count(const std::vector<std::string>& texts, const std::string& text) {
  return static_cast<std::size_t>(std::count(texts.begin(), texts.end(), text));
}

constexpr std::size_t kMegabyte = 1 << 20;

TEST(Sampler, SeesMemoryAndCpuTime) {
  Watched watched([] {
    std::vector<char> memory(64 * kMegabyte, 'x');
    while (::clock() < CLOCKS_PER_SEC / 5) memory[static_cast<std::size_t>(::clock()) % memory.size()] = 'y';
    memory = {};
    ::usleep(100'000);
  });
  const SamplerOutcome outcome = watched.end();
  EXPECT_EQ(outcome.unreadable, 0u);
  EXPECT_EQ(outcome.problem, "");
  const Log log = watched.log();
  std::uint64_t most = 0;
  for (const wire::Record& record : log.of(wire::RecordKind::kUsage)) most = std::max(most, record.usage.rss_bytes);
  EXPECT_GE(most, 64 * kMegabyte);
  const wire::UsageRecord last = log.of(wire::RecordKind::kUsage).back().usage;
  EXPECT_EQ(last.rss_bytes, 0u);                                 // it had ended
  EXPECT_GE(last.user_ns + last.system_ns, 180'000'000u);        // 200 ms, in ticks of 10 ms
  EXPECT_GT(last.minor_faults, 64 * kMegabyte / 2 / kMegabyte);  // huge pages: at least one per 2 MiB
  const wire::IoRecord more = log.of(wire::RecordKind::kIo).back().io;
  EXPECT_GE(more.peak_rss_bytes, 64 * kMegabyte);
  EXPECT_GE(more.voluntary_switches, 1u);  // it slept
}

TEST(Sampler, FollowsChildrenGrandchildrenAndOrphans) {
  Watched watched([] { shell("sleep 60 & sh -c 'sleep 60; true' & (sleep 60 &) ; wait"); });
  // Three sleeps: a child, a grandchild, and one whose parent ended at once.
  EXPECT_TRUE(watched.wait_until([](const Log& log) { return count(log.images(), "sleep") == 3; }));
  const Log log = watched.log();
  std::set<std::uint64_t> all, read;
  for (const wire::Record& record : log.of(wire::RecordKind::kProcess)) all.insert(record.process.pid);
  for (const wire::Record& record : log.of(wire::RecordKind::kUsage)) read.insert(record.usage.pid);
  EXPECT_EQ(all, read);
  EXPECT_GE(all.size(), 5u);  // root, inner shell, three sleeps
  all.erase(static_cast<std::uint64_t>(watched.pid()));
  for (const std::uint64_t pid : all) ::kill(static_cast<pid_t>(pid), SIGKILL);
  watched.end();
}

TEST(Sampler, NoticesExec) {
  const std::string flag = testing::TempDir() + "/sampler_flag" + std::to_string(::getpid());
  Watched watched([&] { shell("while [ ! -e " + flag + " ]; do sleep 0.05; done; exec sleep 60"); });
  EXPECT_TRUE(watched.wait_until([&](const Log& log) { return !log.images(watched.pid()).empty(); }));
  EXPECT_NE(watched.log().images(watched.pid()).back(), "sleep");
  EXPECT_TRUE(base::write_file(flag, ""));
  EXPECT_TRUE(watched.wait_until([&](const Log& log) { return log.images(watched.pid()).back() == "sleep"; }));
  ::kill(watched.pid(), SIGKILL);
  watched.end();
  std::filesystem::remove(flag);
}

TEST(Sampler, SaysWhenAProcessEnded) {
  Watched watched([] { shell("sleep 0.3; exec sleep 60"); });
  const auto ended = [](const Log& log) {
    for (const wire::Record& record : log.of(wire::RecordKind::kProcess)) {
      if (record.process.ended != 0) return true;
    }
    return false;
  };
  EXPECT_TRUE(watched.wait_until(ended));
  ::kill(watched.pid(), SIGKILL);
  watched.end();
}

TEST(Usage, AForkedProcessIsNotReadWhileItMayBecomeAnother) {
  const std::string path = testing::TempDir() + "/usage" + std::to_string(::getpid()) + ".log";
  std::filesystem::remove(path);
  auto log = HostLog::create(path);
  ASSERT_TRUE(log);
  int go[2], done[2];
  ASSERT_EQ(::pipe2(go, O_CLOEXEC), 0);
  ASSERT_EQ(::pipe2(done, O_CLOEXEC), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    char byte;
    (void)!::read(go[0], &byte, 1);
    ::execl("/bin/sleep", "sleep", "60", nullptr);
    ::_exit(1);
  }
  constexpr std::uint64_t kHour = 3'600'000'000'000;
  Usage usage(*log, kHour);
  usage.follow(::getpid());
  usage.follow(child);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(usage.read().empty());
  ASSERT_TRUE(log->flush());
  EXPECT_TRUE(read_log(path).images(child).empty());
  for (const wire::Record& record : read_log(path).of(wire::RecordKind::kUsage)) {
    EXPECT_NE(record.usage.pid, static_cast<std::uint32_t>(child));
  }
  ASSERT_EQ(::write(go[1], "x", 1), 1);
  ::close(done[1]);
  char byte;
  EXPECT_EQ(::read(done[0], &byte, 1), 0);  // closed by the exec
  for (int i = 0; i < 3; ++i) usage.read();
  ASSERT_TRUE(log->flush());
  EXPECT_EQ(read_log(path).images(child), std::vector<std::string>{"sleep"});
  ::kill(child, SIGKILL);
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  EXPECT_EQ(usage.read(), std::vector<pid_t>{child});
  for (const int descriptor : {go[0], go[1], done[0]}) ::close(descriptor);
  std::filesystem::remove(path);
}

TEST(Sampler, EndsWithoutBeingStopped) {
  Watched watched([] { ::usleep(10'000); });
  ASSERT_EQ(::waitpid(watched.pid(), nullptr, 0), watched.pid());
}

}  // namespace
}  // namespace llmprof::host
