// Two processes, read every 20 ms. What the golden files expect, derived by hand:
//
// tiny (100): 10 MB; at 200 ms and every 20 ms after it 50 MB more, so 210 MB at 260 ms; 110 MB from 500 ms, 112 MB
//   from 900 ms; it ended at 1000 ms. CPU: 8 ms user and 2 ms system per 20 ms, 50 readings: 400 + 100 ms of 1 s: 50 %
//   of a core. The kernel saw a peak of 215 MB between two readings.
// worker (101, no events): 30 MB. It was executed in place of a shell with 3 MB that had used 10 ms. The shell is
//   read at 300, 320, 340 ms, the worker at 360 to 680 ms: 180 - 10 = 170 ms user of 340 ms.
// Both together: 213 MB from 300 ms, 240 MB from 360 ms: the peak, 340 ms after the first reading. Open: load › cache.
// Gains, by the nearest readings (of two as near the earlier):
//   load 100 to 480 ms: 210 - 10 = 200 MB; in it weights 190 to 290: from 180 to 280: 210 - 10 = 200, cache 300 to 460:
//   0. So load itself: 0.
//   serve 490 to 950: from 480 to 940: 112 - 210 = -98; in it decode 510 to 610: 0, and 850 to 950: 112 - 110 = 2. So
//   serve itself: -100. A range of 5 ms is too short to be read.
#include "builder.h"
#include "traces.h"

namespace llmprof::traces {
namespace {

constexpr std::int64_t kMs = 1'000'000;
constexpr std::int64_t kMb = 1'000'000;

std::int64_t tiny_mb(std::int64_t ms) {
  if (ms < 200) return 10;
  if (ms < 280) return 10 + 50 * ((ms - 180) / 20);
  if (ms < 500) return 210;
  return ms < 900 ? 110 : 112;
}

void read_tiny(trace::RunWriter& writer) {
  for (std::int64_t ms = 20; ms <= 1000; ms += 20) {
    const bool ended = ms == 1000;
    trace::ProcessUsageRow row{.ts_ns = ms * kMs,
                               .process_id = 1,
                               .rss_bytes = ended ? 0 : tiny_mb(ms) * kMb,
                               .threads = ms < 100 ? 1 : 4,
                               .user_ns = ms / 20 * 8 * kMs,
                               .system_ns = ms / 20 * 2 * kMs,
                               .minor_faults = ms * 10,
                               .major_faults = 3};
    if (ended) {
      row.read_bytes = 4'096'000;
      row.written_bytes = 0;
      row.voluntary_switches = 70;
      row.involuntary_switches = 1200;
      row.peak_rss_bytes = 215 * kMb;
    }
    writer.add(row);
  }
}

void read_worker(trace::RunWriter& writer, Builder& run) {
  writer.add(trace::ProcessRow{.id = 2,
                               .pid = 101,
                               .parent_pid = 100,
                               .executable = run.name("/bin/sh"),
                               .begin_ns = 300 * kMs,
                               .end_ns = 360 * kMs});
  writer.add(trace::ProcessRow{.id = 3,
                               .pid = 101,
                               .parent_pid = 100,
                               .executable = run.name("/bin/worker"),
                               .begin_ns = 360 * kMs,
                               .end_ns = 700 * kMs});
  for (std::int64_t ms = 300; ms < 700; ms += 20) {
    const bool shell = ms < 360;
    writer.add(trace::ProcessUsageRow{.ts_ns = ms * kMs,
                                      .process_id = shell ? 2 : 3,
                                      .rss_bytes = (shell ? 3 : 30) * kMb,
                                      .threads = 1,
                                      .user_ns = (shell ? 10 : 10 + (ms - 340) / 20 * 10) * kMs,
                                      .minor_faults = shell ? 50 : 90});
  }
}

}  // namespace

Result<void> write_host_memory(const std::string& folder) {
  LLMPROF_LET(trace::RunWriter writer, trace::RunWriter::create(folder));
  Builder run(writer, 1000 * kMs);
  run.thread(1);
  run.range("stage", "load", 100 * kMs, 480 * kMs);
  run.range("", "weights", 190 * kMs, 290 * kMs);
  run.range("", "cache", 300 * kMs, 460 * kMs);
  run.range("", "serve", 490 * kMs, 950 * kMs);
  run.range("step", "decode", 510 * kMs, 610 * kMs);
  run.range("step", "decode", 850 * kMs, 950 * kMs);
  run.range("", "short", 700 * kMs, 705 * kMs);
  read_tiny(writer);
  read_worker(writer, run);
  return writer.finish(run_info({"tiny", "serve"}));
}

}  // namespace llmprof::traces
