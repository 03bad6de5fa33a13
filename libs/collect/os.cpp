#include "collect/os.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>

#include "collect/settings.h"

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

std::size_t read_launcher_variables(char* out, std::size_t capacity) {
  // Of torchrun, Slurm, Open MPI, other MPIs, vLLM and Accelerate.
  constexpr const char* kNames[] = {"RANK",
                                    "LOCAL_RANK",
                                    "WORLD_SIZE",
                                    "LOCAL_WORLD_SIZE",
                                    "SLURM_PROCID",
                                    "SLURM_STEP_NUM_TASKS",
                                    "OMPI_COMM_WORLD_RANK",
                                    "OMPI_COMM_WORLD_SIZE",
                                    "PMI_RANK",
                                    "PMI_SIZE",
                                    "VLLM_DP_RANK",
                                    "VLLM_DP_SIZE",
                                    "MEGATRON_LM_TP_DEGREE",
                                    "MEGATRON_LM_PP_DEGREE",
                                    "PARALLELISM_CONFIG_TP_SIZE",
                                    "PARALLELISM_CONFIG_CP_SIZE"};
  constexpr std::size_t kMostDigits = 9;
  std::size_t length = 0;
  for (const char* name : kNames) {
    const char* value = secure_getenv(name);
    if (value == nullptr) continue;
    const std::size_t digits = strnlen(value, kMostDigits + 1), name_length = strlen(name);
    if (digits == 0 || digits > kMostDigits || strspn(value, "0123456789") != digits) continue;
    if (length + name_length + digits + 2 > capacity) break;
    if (length > 0) out[length++] = ' ';
    memcpy(out + length, name, name_length);
    length += name_length;
    out[length++] = '=';
    memcpy(out + length, value, digits);
    length += digits;
  }
  return length;
}

namespace {

constexpr std::size_t kLargeStackBytes = 64u << 20;

}  // namespace

bool start_own_thread(void* (*main)(void*), std::size_t stack_bytes) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_attr_t attributes;
  if (const int error = pthread_attr_init(&attributes); error != 0) {
    errno = error;
    return false;
  }
  pthread_attr_setstacksize(&attributes, stack_bytes);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  pthread_sigmask(SIG_SETMASK, &all, &before);  // inherited by the new thread: it never runs the program's handlers
  pthread_t thread;
  int result = pthread_create(&thread, &attributes, main, nullptr);
  if (result == EINVAL) {  // the program's thread-local data alone is larger
    pthread_attr_setstacksize(&attributes, kLargeStackBytes);
    result = pthread_create(&thread, &attributes, main, nullptr);
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  pthread_attr_destroy(&attributes);
  errno = result;
  return result == 0;
}

void name_own_thread(const char* name) { pthread_setname_np(pthread_self(), name); }

std::uint64_t parse_setting(const SettingRow& row, const char* text) {
  if (text == nullptr || *text == '\0') return row.fallback;
  std::uint64_t value = 0;
  for (; *text != '\0'; ++text) {
    if (*text < '0' || *text > '9') return row.fallback;
    const auto digit = static_cast<std::uint64_t>(*text - '0');
    if (value > (~0ull - digit) / 10) return row.most;
    value = value * 10 + digit;
  }
  if (value < row.least) return row.least;
  return value > row.most ? row.most : value;
}

namespace {

void read_text(const char* variable, char (&out)[kMaxPatternBytes]) {
  const char* text = secure_getenv(variable);
  const std::size_t length = text != nullptr ? strlen(text) : 0;
  if (length > 0 && length < sizeof(out)) memcpy(out, text, length + 1);
}

}  // namespace

bool read_settings(Settings* settings) {
  if (getauxval(AT_SECURE) != 0) return false;
  for (const SettingRow& row : kSettings) settings->*row.value = parse_setting(row, secure_getenv(row.variable));
  read_text("LLMPROF_WINDOW_RANGE", settings->window_range);
  read_text("LLMPROF_STEP_PATTERNS", settings->step_patterns);
  const char* folder = secure_getenv("LLMPROF_CAPTURE_DIR");
  if (folder == nullptr || folder[0] != '/') return false;
  const std::size_t length = strlen(folder);
  if (length >= kMaxFolderBytes) return false;
  memcpy(settings->folder, folder, length + 1);
  return true;
}

}  // namespace llmprof::collect
