#pragma once
// What the environment tells the collector. Read once, when the collector is first asked whether it is on.

#include <cstddef>
#include <cstdint>

namespace llmprof::collect {

inline constexpr std::size_t kMaxFolderBytes = 3072;  // leaves room for the file name within PATH_MAX

struct Settings {
  char folder[kMaxFolderBytes];  // LLMPROF_CAPTURE_DIR: absolute; empty means off
  std::uint64_t max_bytes;
  std::uint64_t flush_ms;
  std::uint64_t pool_chunks;
};

// One row is the whole definition of a number: a value outside is moved to the nearest end, nonsense to `fallback`.
struct SettingRow {
  const char* variable;
  std::uint64_t Settings::*value;
  std::uint64_t least, most, fallback;
  const char* meaning;
};

inline constexpr SettingRow kSettings[] = {
    {"LLMPROF_MAX_BYTES", &Settings::max_bytes, 4096, ~0ull, ~0ull, "size at which a process stops its log, bytes"},
    {"LLMPROF_FLUSH_MS", &Settings::flush_ms, 1, 60000, 200, "longest time a record waits in memory, ms"},
    {"LLMPROF_POOL_CHUNKS", &Settings::pool_chunks, 4, 16384, 16384, "record buffers of 2 KiB each"},
};

// Fills `settings`. False: recording is off (no folder, not absolute, too long, or a setuid program).
bool read_settings(Settings* settings);

// Parses a decimal number by the rule of SettingRow; null text is the fallback.
std::uint64_t parse_setting(const SettingRow& row, const char* text);

}  // namespace llmprof::collect
