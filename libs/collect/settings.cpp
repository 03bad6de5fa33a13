#include "collect/settings.h"

#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>

namespace llmprof::collect {

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
