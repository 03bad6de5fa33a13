// fork, exec, spawn, vfork, popen, daemon: in every mixture.

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <map>
#include <thread>

#include "victim.h"

extern char** environ;

namespace fault {
namespace {

std::string child_label(const Arguments& arguments, const char* kind, long i) {
  return arguments[0] + "." + kind + std::to_string(i);
}

std::vector<char*> pointers(std::vector<std::string>& words) {
  std::vector<char*> result;
  for (std::string& word : words) result.push_back(word.data());
  result.push_back(nullptr);
  return result;
}

// Words of a command that runs this program again.
std::vector<std::string> again(std::vector<std::string> words) {
  words.insert(words.begin(), "/proc/self/exe");
  char path[4096];
  const ssize_t length = readlink("/proc/self/exe", path, sizeof(path));
  if (length > 0) words[0].assign(path, static_cast<std::size_t>(length));
  return words;
}

int wait_for(pid_t child) {
  int status = -1;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

// What a forked child may do before it ends.
[[noreturn]] void child_work(const std::string& label, long way) {
  alarm(30);  // a deadlock ends in SIGALRM
  if (way == 0) _exit(0);
  if (way == 1) {  // computes, allocates, no events
    std::string text;
    for (int i = 0; i < 1000; ++i) text += std::to_string(i);
    _exit(text.size() > 1000 ? 0 : 1);
  }
  Ledger mine(label);
  mine.emit(0, 5, 0);
  if (way == 2) std::exit(0);
  usleep(20000);  // longer than the first flushes: what _exit leaves behind is written
  _exit(0);
}

class BusyThreads {
 public:
  BusyThreads(Ledger& ledger, int count, unsigned pause_us) {
    for (int i = 0; i < count; ++i) {
      threads_.emplace_back([this, &ledger, i, pause_us] {
        while (!stop_) ledger.emit(static_cast<std::size_t>(i), 20, pause_us);
      });
    }
  }
  ~BusyThreads() {
    stop_ = true;
    for (auto& thread : threads_) thread.join();
  }

 private:
  std::atomic<bool> stop_{false};
  std::vector<std::thread> threads_;
};

// CHILDREN: forks while eight threads raise events.
int fork_under_load(const Arguments& arguments) {
  Ledger mine(arguments[0], 8);
  mine.emit(0);  // the client's own search for a tool is over before the first fork
  std::map<int, int> ends;
  {
    const BusyThreads busy(mine, 8, 20);
    for (long i = 0; i < number(arguments, 1, 20); ++i) {
      const pid_t child = fork();
      if (child == 0) child_work(child_label(arguments, "c", i), i % 4);
      ++ends[wait_for(child)];
    }
  }
  for (const auto& [status, count] : ends) std::printf("%d x status %d\n", count, status);
  return 0;
}

// CHILDREN: forks at the very moment when other threads raise the first events of the process.
int fork_at_start(const Arguments& arguments) {
  std::map<int, int> ends;
  for (long i = 0; i < number(arguments, 1, 20); ++i) {
    const pid_t child = fork();  // a process of its own, in which nothing was recorded yet
    if (child == 0) {
      alarm(30);
      Ledger mine(child_label(arguments, "p", i), 3);
      std::vector<std::thread> threads;
      for (std::size_t k = 0; k < 2; ++k) threads.emplace_back([&mine, k] { mine.emit(k, 3, 0); });
      const pid_t grandchild = fork();
      if (grandchild == 0) {
        Ledger own(child_label(arguments, "g", i));
        own.emit(0, 200, 0);  // one event that waits for a lost thread would be seen; two hundred certainly
        _exit(0);
      }
      const int status = wait_for(grandchild);
      for (auto& thread : threads) thread.join();
      std::exit(status == 0 ? 0 : 1);
    }
    ++ends[wait_for(child)];
  }
  for (const auto& [status, count] : ends) std::printf("%d x status %d\n", count, status);
  return 0;
}

// Parent, four spawned workers, two forked ones, all with events, all at once.
int tree(const Arguments& arguments) {
  Ledger mine(arguments[0]);
  mine.emit(0, 10, 0);
  std::vector<pid_t> children;
  for (long i = 0; i < 4; ++i) {
    auto words = again({"quiet_run", child_label(arguments, "s", i), "20", "1000"});
    pid_t child = -1;
    if (posix_spawn(&child, words[0].c_str(), nullptr, nullptr, pointers(words).data(), environ) != 0) return 1;
    children.push_back(child);
  }
  for (long i = 0; i < 2; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      Ledger own(child_label(arguments, "f", i));
      own.emit(0, 20, 1000);
      std::exit(0);
    }
    children.push_back(child);
  }
  mine.emit(0, 10, 0);
  int failed = 0;
  for (const pid_t child : children) failed += wait_for(child) != 0;
  std::printf("failed %d\n", failed);
  return 0;
}

// LEFT: the same process becomes a new program, LEFT times.
int exec_chain(const Arguments& arguments) {
  const long left = number(arguments, 1, 0);
  Ledger mine(child_label(arguments, "x", left));
  mine.emit(0, 5, 0);
  if (left == 0) return 0;
  usleep(300000);  // longer than a flush: an image that execs ends without its exit handlers
  auto words = again({"exec_chain", arguments[0], std::to_string(left - 1)});
  execv(words[0].c_str(), pointers(words).data());
  return 1;
}

pid_t start_child(std::vector<std::string>& words, long way) {
  std::vector<char*> argv = pointers(words);
  if (way == 0) {
    const pid_t child = fork();
    if (child == 0) {
      execv(argv[0], argv.data());
      _exit(127);
    }
    return child;
  }
  if (way == 1) {
    const pid_t child = vfork();
    if (child == 0) {
      execv(argv[0], argv.data());
      _exit(127);
    }
    return child;
  }
  pid_t child = -1;
  return posix_spawn(&child, argv[0], nullptr, nullptr, argv.data(), environ) == 0 ? child : -1;
}

// CHILDREN POPENS: short children with two events each, started in every way; then some through a shell.
int many_children(const Arguments& arguments) {
  Ledger mine(arguments[0]);
  std::map<int, int> ends;
  std::vector<pid_t> running;
  for (long i = 0; i < number(arguments, 1, 100); ++i) {
    mine.emit(0);
    auto words = again({"quiet_run", child_label(arguments, "k", i), "2"});
    running.push_back(start_child(words, i % 3));
    if (running.size() < 4) continue;
    ++ends[wait_for(running.front())];
    running.erase(running.begin());
  }
  for (const pid_t child : running) ++ends[wait_for(child)];
  for (long i = 0; i < number(arguments, 2, 10); ++i) {
    FILE* pipe = popen("echo from a shell", "r");
    char line[64] = {};
    if (pipe == nullptr || std::fgets(line, sizeof(line), pipe) == nullptr) return 1;
    ++ends[pclose(pipe)];
    mine.emit(0);
  }
  for (const auto& [status, count] : ends) std::printf("%d x status %d\n", count, status);
  return 0;
}

// EVENTS PAUSE_US
int quiet_run(const Arguments& arguments) {
  Ledger mine(arguments[0]);
  mine.emit(0, static_cast<std::uint64_t>(number(arguments, 1, 2)), static_cast<unsigned>(number(arguments, 2, 0)));
  return 0;
}

// WORKERS: they write until killed, all in one group of their own; the whole group gets SIGKILL.
int kill_group(const Arguments& arguments) {
  std::vector<pid_t> workers;
  pid_t group = 0;
  for (long i = 0; i < number(arguments, 1, 8); ++i) {
    const pid_t child = fork();
    if (child == 0) {
      setpgid(0, group);
      auto words = again({"until_killed", child_label(arguments, "w", i), "1", "200"});
      execv(words[0].c_str(), pointers(words).data());
      _exit(127);
    }
    if (group == 0) group = child;
    setpgid(child, group);
    workers.push_back(child);
  }
  usleep(static_cast<useconds_t>(number(arguments, 2, 700)) * 1000);
  kill(-group, SIGKILL);
  std::map<int, int> ends;
  for (const pid_t worker : workers) ++ends[wait_for(worker)];
  for (const auto& [status, count] : ends) std::printf("%d x status %d\n", count, status);
  return 0;
}

// The classic daemon: fork, own session, descriptors to /dev/null, then its own work. The pipe tells when it is done.
int make_daemon(const Arguments& arguments) {
  Ledger mine(arguments[0]);
  mine.emit(0, 5, 0);
  int ends[2];
  if (pipe(ends) != 0) return 1;
  const pid_t child = fork();
  if (child == 0) {
    if (daemon(0, 0) != 0) _exit(1);
    Ledger own(arguments[0] + ".daemon");
    own.emit(0, 50, 0);
    std::exit(0);
  }
  const int status = wait_for(child);
  close(ends[1]);
  char byte;
  while (read(ends[0], &byte, 1) > 0) {  // until the daemon has ended
  }
  mine.emit(0, 5, 0);
  std::printf("status %d\n", status);
  return 0;
}

// A child made by the system call itself: no fork handler runs. Its events may be missed; nothing else may happen.
int raw_clone(const Arguments& arguments) {
  Ledger mine(arguments[0]);
  mine.emit(0, 50, 0);
  Ledger own(arguments[0] + ".raw");
  const pid_t child = static_cast<pid_t>(syscall(SYS_clone, SIGCHLD, nullptr, nullptr, nullptr, nullptr));
  if (child == 0) {
    alarm(30);
    own.emit(0, 5000, 0);
    _exit(0);
  }
  const int status = wait_for(child);
  mine.emit(0, 50, 0);
  std::printf("status %d\n", status);
  return 0;
}

constexpr Scenario kScenarios[] = {
    {"fork_under_load", fork_under_load}, {"fork_at_start", fork_at_start}, {"tree", tree},
    {"exec_chain", exec_chain},           {"many_children", many_children}, {"quiet_run", quiet_run},
    {"kill_group", kill_group},           {"daemon", make_daemon},          {"raw_clone", raw_clone},
};

}  // namespace

Scenarios processes() { return {kScenarios, std::size(kScenarios)}; }

}  // namespace fault
