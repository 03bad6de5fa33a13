#include "advise/tool.h"

#include <fcntl.h>
#include <glob.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <csignal>
#include <cstdlib>

#include "base/file.h"

extern char** environ;

namespace llmprof::advise {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kMostBytes = 1 << 20;
constexpr std::chrono::milliseconds kPatience{10'000};

// Where NVIDIA's packages put them, the newest last in each pattern's sorted matches.
constexpr std::array kNsysPlaces{"usr/local/cuda/bin/nsys",
                                 "usr/local/cuda-*/bin/nsys",
                                 "opt/nvidia/nsight-systems/*/bin/nsys",
                                 "opt/nvidia/nsight-systems-cli/*/bin/nsys",
                                 "opt/nvidia/nsight-compute/*/host/target-linux-x64/nsys",
                                 "usr/local/cuda/nsight-compute*/host/target-linux-x64/nsys"};
constexpr std::array kNcuPlaces{"usr/local/cuda/bin/ncu", "usr/local/cuda-*/bin/ncu", "opt/nvidia/nsight-compute/*/ncu",
                                "usr/local/cuda/nsight-compute*/ncu"};

bool executable(const std::string& path) { return base::is_file(path) && ::access(path.c_str(), X_OK) == 0; }

std::string newest_match(const std::string& pattern) {
  glob_t found{};
  std::string best;
  if (::glob(pattern.c_str(), 0, nullptr, &found) == 0) {
    for (std::size_t i = found.gl_pathc; i-- > 0 && best.empty();) {
      if (executable(found.gl_pathv[i])) best = found.gl_pathv[i];
    }
  }
  ::globfree(&found);
  return best;
}

std::string find_in_usual_places(const std::string& name, const std::string& root) {
  if (root.empty()) return "";
  const auto search = [&](const auto& places) {
    for (const char* place : places) {
      if (std::string path = newest_match(root + place); !path.empty()) return path;
    }
    return std::string();
  };
  return name == "ncu" ? search(kNcuPlaces) : search(kNsysPlaces);
}

std::string read_until(int descriptor, Clock::time_point until) {
  std::string text;
  while (text.size() < kMostBytes) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now()).count();
    pollfd wait{descriptor, POLLIN, 0};
    const int ready = ::poll(&wait, 1, static_cast<int>(std::max<std::int64_t>(left, 0)));
    if (ready < 0 && errno == EINTR) continue;
    char buffer[4096];
    const ssize_t count = ready > 0 ? ::read(descriptor, buffer, sizeof buffer) : 0;
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) break;
    text.append(buffer, static_cast<std::size_t>(count));
  }
  return text;
}

// In a group of its own, so that what it starts ends with it.
int spawn(const std::vector<std::string>& words, int output, pid_t& pid) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, output, 1);
  posix_spawn_file_actions_adddup2(&actions, output, 2);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  const int error = ::posix_spawn(&pid, words[0].c_str(), &actions, &attributes, arguments.data(), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  return error;
}

}  // namespace

Places places_here() { return {base::env_or("PATH", "/usr/bin:/bin"), "/"}; }

bool Tool::has(std::string_view option) const { return help.empty() || help.find(option) != std::string::npos; }

Result<std::string> output_of(const std::vector<std::string>& words, std::chrono::milliseconds patience) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return base::errno_error(ErrorCode::kIo, "pipe", errno);
  pid_t pid = -1;
  const int error = spawn(words, ends[1], pid);
  ::close(ends[1]);
  std::string text;
  if (error == 0) {
    text = read_until(ends[0], Clock::now() + patience);
    ::kill(-pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
  }
  ::close(ends[0]);
  if (error != 0) return base::errno_error(base::code_of_errno(error), words[0], error);
  return text;
}

std::string version_in(std::string_view text) {
  const auto digit = [](char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; };
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (!digit(text[at]) || (at > 0 && (digit(text[at - 1]) || text[at - 1] == '.'))) continue;
    std::size_t end = at;
    bool dotted = false;
    while (end < text.size() &&
           (digit(text[end]) || (text[end] == '.' && end + 1 < text.size() && digit(text[end + 1])))) {
      dotted |= text[end++] == '.';
    }
    if (dotted) return std::string(text.substr(at, end - at));
  }
  return "";
}

std::string find_on_path(const std::string& name, const std::string& path) {
  if (name.find('/') != std::string::npos) return executable(name) ? name : "";
  for (std::size_t at = 0; at <= path.size() && !path.empty();) {
    const std::size_t end = std::min(path.find(':', at), path.size());
    const std::string folder = path.substr(at, end - at);
    if (std::string full = folder + "/" + name; !folder.empty() && executable(full)) return full;
    at = end + 1;
  }
  return "";
}

Tool find_tool(const std::string& name, const Places& places) {
  Tool tool;
  tool.path = find_on_path(name, places.path);
  tool.word = name;
  if (tool.path.empty()) {
    tool.path = find_in_usual_places(name, places.root);
    if (tool.installed()) tool.word = tool.path;
  }
  if (!tool.installed()) return tool;
  const auto asked = [&](std::vector<std::string> words) {
    words.insert(words.begin(), tool.path);
    const Result<std::string> text = output_of(words, kPatience);
    return text ? *text : std::string();
  };
  tool.version = version_in(asked({"--version"}));
  tool.help = name == "ncu" ? asked({"--help"}) : asked({"profile", "--help"});
  if (tool.help.find("--") == std::string::npos) tool.help.clear();  // no list of options: it did not understand
  return tool;
}

}  // namespace llmprof::advise
