#pragma once
// The table that torch.profiler prints (key_averages().table()), read back from its text: for profiles of which nothing
// else was kept. Pure functions; the text may be anything.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace llmprof::importers {

struct MeasuredRow {
  std::string name;  // shortened by torch where it was long
  std::int64_t calls = 0;
  // Times are ns, over all calls; nullopt where the table has no such column. Self: without what it called.
  std::optional<double> self_cpu_ns, cpu_ns, self_device_ns, device_ns;
  std::optional<double> cpu_bytes, self_cpu_bytes, device_bytes, self_device_bytes;  // allocated less freed
  std::optional<double> flops;                                                       // of all calls
  std::string shapes;                                                                // "" if not printed
};

struct MeasuredTable {
  std::vector<MeasuredRow> rows;                        // as printed; torch prints only the first 100 unless told
  std::string device;                                   // "CUDA", "XPU"; "" if the table has times of the CPU only
  std::optional<double> cpu_total_ns, device_total_ns;  // of everything, also of rows that were not printed
  std::int64_t further_tables = 0;                      // behind the first; their rows are not read

  const MeasuredRow* find(std::string_view name) const;  // the first of that name; nullptr if there is none
};

inline constexpr std::size_t kMaxMeasuredRows = 100'000;
inline constexpr std::uint64_t kMaxMeasuredBytes = 64 << 20;

using BadLine = std::function<void(std::size_t line, const std::string& what)>;

// `where` stands in front of every message, with the line ("x.txt:4: …"; "": "line 4: …"). Lines that are neither table
// nor total are skipped. A row that cannot be read is an error or, where `bad_line` is given, is told to it and left
// out.
Result<MeasuredTable> parse_key_averages(std::string_view text, std::string_view where, const BadLine& bad_line = {});

}  // namespace llmprof::importers
