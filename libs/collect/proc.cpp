#include "collect/proc.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

namespace llmprof::collect {

std::size_t read_file(const char* path, char* out, std::size_t capacity) {
  const int descriptor = open(path, O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return 0;
  std::size_t length = 0;
  while (length < capacity) {
    const ssize_t got = read(descriptor, out + length, capacity - length);
    if (got <= 0) break;
    length += static_cast<std::size_t>(got);
  }
  close(descriptor);
  return length;
}

std::uint64_t parse_start_ticks(const char* stat, std::size_t length) {
  // The second field is the program's name in parentheses and may contain anything, so count from the last ')'.
  const char* at = static_cast<const char*>(memrchr(stat, ')', length));
  const char* const end = stat + length;
  int field = 2;
  for (; at != nullptr && at != end && field < 22; ++at) {
    if (*at == ' ') ++field;
  }
  std::uint64_t ticks = 0;
  if (at == nullptr || field != 22) return 0;
  for (; at != end && *at >= '0' && *at <= '9'; ++at) ticks = ticks * 10 + static_cast<std::uint64_t>(*at - '0');
  return ticks;
}

std::uint64_t read_start_ticks() {
  char stat[1024];
  return parse_start_ticks(stat, read_file("/proc/self/stat", stat, sizeof(stat)));
}

void read_host_name(char* out, std::size_t capacity) {
  if (gethostname(out, capacity) != 0) out[0] = '\0';
  out[capacity - 1] = '\0';
  for (char* at = out; *at != '\0'; ++at) {
    const bool plain = (*at >= 'a' && *at <= 'z') || (*at >= 'A' && *at <= 'Z') || (*at >= '0' && *at <= '9') ||
                       *at == '-' || *at == '_' || (*at == '.' && at != out);
    if (!plain) *at = '_';
  }
  if (out[0] == '\0') memcpy(out, "host", 5);
}

const char* rank_variable() {
  constexpr const char* kNames[] = {"RANK", "LOCAL_RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK"};
  for (const char* name : kNames) {
    const char* value = secure_getenv(name);
    if (value != nullptr && *value != '\0') return value;
  }
  return nullptr;
}

}  // namespace llmprof::collect
