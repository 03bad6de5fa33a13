#include "record/target.h"

#include <elf.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <vector>

#include "base/file.h"

namespace llmprof::record {
namespace {

constexpr int kMaxInterpreters = 5;  // the kernel's own limit is 4 nested scripts

#if defined(__x86_64__)
constexpr Elf64_Half kOwnMachine = EM_X86_64;
#elif defined(__aarch64__)
constexpr Elf64_Half kOwnMachine = EM_AARCH64;
#else
constexpr Elf64_Half kOwnMachine = EM_NONE;
#endif

enum class Access : std::uint8_t { kMissing, kDenied, kRunnable };

Access access_of(const std::string& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) return errno == EACCES ? Access::kDenied : Access::kMissing;
  if (!S_ISREG(info.st_mode)) return Access::kDenied;
  return ::access(path.c_str(), X_OK) == 0 ? Access::kRunnable : Access::kDenied;
}

std::vector<std::string> candidates(const std::string& command, std::string_view search_path) {
  if (command.find('/') != std::string::npos) return {command};
  std::vector<std::string> paths;
  while (true) {
    const std::size_t colon = search_path.find(':');
    const std::string_view folder = search_path.substr(0, colon);
    paths.push_back(folder.empty() ? "./" + command : fmt::format("{}/{}", folder, command));
    if (colon == std::string_view::npos) return paths;
    search_path.remove_prefix(colon + 1);
  }
}

// First runnable candidate; else why not.
Result<std::string> search(const std::string& command, std::string_view search_path) {
  bool denied = false;
  for (const std::string& path : candidates(command, search_path)) {
    const Access access = access_of(path);
    if (access == Access::kRunnable) return path;
    denied = denied || access == Access::kDenied;
  }
  if (denied) return Error{ErrorCode::kPermission, command + ": not an executable program", "check its permissions"};
  return Error{ErrorCode::kNotFound, command + ": command not found", "check the spelling, and PATH"};
}

struct Opened {
  int fd = -1;
  ~Opened() {
    if (fd >= 0) ::close(fd);
  }
};

template <class T>
bool read_at(int fd, std::uint64_t offset, T& value) {
  return ::pread(fd, &value, sizeof value, static_cast<off_t>(offset)) == static_cast<ssize_t>(sizeof value);
}

bool has_interpreter(int fd, const Elf64_Ehdr& header) {
  for (int i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr segment{};
    if (!read_at(fd, header.e_phoff + static_cast<std::uint64_t>(i) * header.e_phentsize, segment)) return false;
    if (segment.p_type == PT_INTERP) return true;
  }
  return false;
}

std::optional<std::string> why_not_elf(int fd, const std::string& path) {
  unsigned char ident[EI_NIDENT] = {};
  if (!read_at(fd, 0, ident)) return path + " is too short to be a program";
  if (ident[EI_CLASS] != ELFCLASS64) return path + " is a 32-bit program";
  Elf64_Ehdr header{};
  if (!read_at(fd, 0, header)) return path + " is too short to be a program";
  if (header.e_machine != kOwnMachine) return path + " is for another processor architecture";
  if (!has_interpreter(fd, header)) return path + " is statically linked";
  return std::nullopt;
}

// The dynamic linker ignores LD_PRELOAD when the program gains rights by being started.
std::optional<std::string> why_not_privileged(int fd, const std::string& path) {
  struct stat info {};
  if (::fstat(fd, &info) != 0) return std::nullopt;
  if ((info.st_mode & S_ISUID) != 0 && info.st_uid != ::geteuid()) return path + " is setuid";
  const bool group_runs = (info.st_mode & S_IXGRP) != 0;  // without it the bit means mandatory locking
  if ((info.st_mode & S_ISGID) != 0 && group_runs && info.st_gid != ::getegid()) return path + " is setgid";
  const bool gains_rights = ::geteuid() != 0;  // root has them already
  if (gains_rights && ::fgetxattr(fd, "security.capability", nullptr, 0) > 0) return path + " has file capabilities";
  return std::nullopt;
}

// "#!/usr/bin/env -S python3 -u" -> the words after "#!".
std::vector<std::string> interpreter_words(int fd) {
  char line[256] = {};
  const ssize_t count = ::pread(fd, line, sizeof line - 1, 2);
  if (count <= 0) return {};
  std::string_view rest(line, static_cast<std::size_t>(count));
  rest = rest.substr(0, rest.find('\n'));
  std::vector<std::string> words;
  while (true) {
    const std::size_t begin = rest.find_first_not_of(" \t\r");
    if (begin == std::string_view::npos) return words;
    rest.remove_prefix(begin);
    const std::size_t end = rest.find_first_of(" \t\r");
    words.emplace_back(rest.substr(0, end));
    if (end == std::string_view::npos) return words;
    rest.remove_prefix(end);
  }
}

// The program that "env" starts: the first word that is neither an option nor a variable.
std::optional<std::string> started_by_env(const std::vector<std::string>& words) {
  if (words.empty() || !words.front().ends_with("/env")) return std::nullopt;
  for (std::size_t i = 1; i < words.size(); ++i) {
    if (!words[i].starts_with('-') && words[i].find('=') == std::string::npos) return words[i];
  }
  return std::nullopt;
}

std::optional<std::string> why_not(const std::string& path, std::string_view search_path, int depth) {
  const Opened file{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
  if (file.fd < 0) return std::nullopt;  // unreadable programs run; whether they can be injected shows in their log
  if (auto reason = why_not_privileged(file.fd, path)) return reason;
  char magic[4] = {};
  if (!read_at(file.fd, 0, magic)) return std::nullopt;  // shorter than any program: a script run by sh
  if (std::memcmp(magic, ELFMAG, SELFMAG) == 0) return why_not_elf(file.fd, path);
  if (magic[0] != '#' || magic[1] != '!' || depth >= kMaxInterpreters) return std::nullopt;
  const std::vector<std::string> words = interpreter_words(file.fd);
  if (words.empty()) return std::nullopt;
  if (const auto program = started_by_env(words)) {
    if (const auto found = search(*program, search_path)) return why_not(*found, search_path, depth + 1);
  }
  return why_not(words.front(), search_path, depth + 1);
}

}  // namespace

std::optional<std::string> why_not_injectable(const std::string& path, std::string_view search_path) {
  return why_not(path, search_path, 0);
}

Result<Target> find_target(const std::string& command, std::string_view search_path) {
  if (command.empty()) return Error{ErrorCode::kNotFound, "the command is empty", ""};
  LLMPROF_LET(const std::string path, search(command, search_path));
  return Target{path, why_not_injectable(path, search_path)};
}

}  // namespace llmprof::record
