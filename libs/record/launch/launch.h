#pragma once
// The program to record: found, checked, launched and supervised.

#include <sys/resource.h>
#include <sys/types.h>

#include <chrono>
#include <csignal>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace llmprof::record {

// The program to record: found as a shell finds it, and looked at before it is launched. A program that cannot be
// injected still runs; the reason becomes the loss `not_injected`.
struct Target {
  std::string path;                           // what execve gets
  std::optional<std::string> not_injectable;  // why the dynamic linker will not load our libraries into it
};

// Searches `search_path` (the value of PATH) unless the command has a slash. kNotFound becomes exit status 127,
// kPermission 126.
Result<Target> find_target(const std::string& command, std::string_view search_path);

// Why a program file cannot be injected, or nothing. Scripts are followed to their interpreter.
std::optional<std::string> why_not_injectable(const std::string& path, std::string_view search_path);

// Runs the recorded program to its end as a shell would: same terminal, same process group, its own signals.
// Blocks the signals it waits for in the calling thread; no other thread of this process may have them open.
struct Launch {
  std::string path;                    // program file
  std::vector<std::string> arguments;  // argv, argv[0] as the user typed it
  std::vector<std::string> environment;
  bool stdout_to_stderr = false;
};

struct Ended {
  pid_t pid = 0;
  int exit_status = 0;  // its own, or 128 + signal
  int signal = 0;       // 0: it ended by itself
  rusage used{};        // by it and by those of its children that it waited for
};

// Sent to llmprof itself it asks for a dump; it is not passed on. (SIGRTMIN is a call.)
inline int dump_signal() { return SIGRTMIN + 1; }

struct Watch {
  std::chrono::milliseconds every{200};
  std::function<void(pid_t)> forked = [](pid_t) {};   // once: the process exists and waits; it becomes the program when
                                                      // this returns (or this process dies)
  std::function<void(pid_t)> started = [](pid_t) {};  // once, after the program started
  std::function<void()> dump = [] {};                 // dump_signal() came
  std::function<void()> poll = [] {};                 // about every `every` while it runs
  std::function<void(pid_t)> ended = [](pid_t) {};    // once: it ended, but /proc still knows it
};

// kPermission (126) or kNotFound (127) if execve refused. Signals sent to this process alone are passed on; those the
// terminal sent to the whole process group are not, as the program got them already.
Result<Ended> launch_and_wait(const Launch& launch, const Watch& watch);

// The same with a program that runs already and is left alone: until it ends, the time is over or a signal asks to stop
// (Ctrl-C, SIGTERM, SIGHUP). `watch.forked` and `started` come at once, `ended` in any case.
struct Attached {
  bool ended = false;  // the program, not only the recording
};
Result<Attached> attach_and_wait(pid_t pid, std::optional<std::chrono::nanoseconds> duration, const Watch& watch);

}  // namespace llmprof::record
