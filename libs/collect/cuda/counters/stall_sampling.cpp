#include "collect/cuda/counters/windows.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include <atomic>

#include "collect/cuda/counters/hooks.h"
#include "collect/cuda/counters/profiler_library.h"
#include "collect/cuda/counters/stalls.h"
#include "collect/cuda/gpu.h"
#include "collect/event.h"
#include "collect/names.h"
#include "collect/os.h"

namespace llmprof::collect::counters {
namespace {

using wire::LossKind;

constexpr std::uint64_t kStateEveryNs = 1000000000;
constexpr std::size_t kStatedTogether = 16384;  // records: more wait for the next time
constexpr std::size_t kLinesTogether = 4096;    // places whose source lines are asked for; a question takes about 1 us
constexpr std::uint32_t kFetchesPerLook = 64;
constexpr std::uint32_t kMostTimesFull = 16;  // looks in a row at a full buffer of the device
constexpr std::uint64_t kCallLimitMs = 5000;  // that a program's thread waits for a call of ours
constexpr std::uint64_t kWriterLimitMs = 200;
constexpr char kUnknownCode[] = "<unknown code>";
constexpr std::uint16_t kUnknownReason = StallReasons::kMost;

enum class Phase : std::uint32_t { kOff, kWaiting, kBeginning, kRunning, kEnded };

struct Totals {
  std::uint64_t all, known, unknown, dropped, no_room;
  bool inconsistent;  // more samples without an issue than in all
};

struct Sampling {
  std::atomic<Phase> phase{Phase::kOff};
  std::atomic<void*> context{nullptr};
  std::atomic<std::uint32_t> calling{0};  // so many of us are inside CUPTI, or about to be
  std::atomic<std::uint32_t> ended{0};    // the context is being destroyed
  // Our thread.
  std::uint32_t times_full = 0;
  std::uint64_t stated_ns = 0;
  std::uint16_t device = 0;
  wire::StringId reason_ids[StallReasons::kMost + 1]{};
  wire::StringId unknown_code = 0;
  PcSampler sampler{};
  StallTable table{};
  StallSources sources{};
  StallReasons::Samples samples{};
  Totals totals{};
};
constinit Sampling s;

// No call of CUPTI goes together with a capture of a stream: either sees the other. True: call, then end_call().
bool begin_call() {
  s.calling.fetch_add(1);
  if (s.ended.load() == 0 && !capture_is_open()) return true;
  s.calling.fetch_sub(1);
  return false;
}
void end_call() { s.calling.fetch_sub(1); }

void await_end_of_call() {
  wait_until(kCallLimitMs, [] { return s.calling.load() == 0; });
}

// ---- what was fetched ---------------------------------------------------------------------------------------------

void add(const StallKey& key, std::uint64_t samples) {
  if (!s.table.add(key, samples)) s.totals.no_room += samples;
}

void add_place(const pc::Place& place, wire::StringId function) {
  if (place.reasons == nullptr) return;
  if (!s.sampler.reasons().sort(place.reasons, place.reason_count, &s.samples)) s.totals.inconsistent = true;
  StallKey key = {place.cubin, place.offset, function, 0, true};
  for (std::size_t reason = 0; reason < s.sampler.reasons().count(); ++reason) {
    key.reason = static_cast<std::uint16_t>(reason);
    key.issued = true;
    add(key, s.samples.issued[reason]);
    key.issued = false;
    add(key, s.samples.not_issued[reason]);
    s.totals.known += s.samples.issued[reason] + s.samples.not_issued[reason];
  }
}

// The names of functions are CUPTI's to keep: places share them, and so may records of kernels.
void add_fetched(const Fetched& fetched) {
  const char* last_name = nullptr;
  wire::StringId last = 0;
  for (std::size_t i = 0; i < fetched.count; ++i) {
    const pc::Place& place = fetched.places[i];
    if (place.function == nullptr) last = s.unknown_code;
    if (place.function != nullptr && place.function != last_name) last = intern(place.function);
    last_name = place.function;
    add_place(place, last);
  }
  add({0, 0, s.unknown_code, kUnknownReason, true}, fetched.unknown_samples);
  s.totals.all += fetched.all_samples;
  s.totals.unknown += fetched.unknown_samples;
  s.totals.dropped += fetched.dropped_samples;
  if (fetched.dropped_samples != 0) skip("samples of stalls that the device dropped", fetched.dropped_samples);
}

// False: CUPTI is not to be called any more.
bool fetch_all() {
  Fetched fetched{};
  fetched.more = true;
  for (std::uint32_t i = 0; i < kFetchesPerLook && fetched.more; ++i) {
    if (!s.sampler.fetch(&fetched)) return false;
    add_fetched(fetched);
  }
  s.times_full = fetched.buffer_full ? s.times_full + 1 : 0;
  if (!fetched.buffer_full) return true;
  skip("samples of stalls: the device's buffer was full");
  if (s.times_full < kMostTimesFull) return true;
  note("counters", "reasons of stalls are not read from here on: the device's buffer of samples stays full.");
  return false;
}

// ---- into the log -------------------------------------------------------------------------------------------------

bool put(Thread* thread, const StallTable::Entry& entry, std::uint64_t now) {
  wire::Record* record = reserve(thread, wire::RecordKind::kStall);
  if (record == nullptr) return false;
  const Source source = s.sources.of(entry.key);
  record->stall = {now,
                   entry.samples,
                   entry.key.cubin,
                   entry.key.pc_offset,
                   entry.key.function,
                   s.reason_ids[entry.key.reason],
                   source.file,
                   source.line,
                   s.device,
                   static_cast<std::uint8_t>(entry.key.issued ? 1 : 0)};
  commit(thread);
  return true;
}

// True: nothing is left. `may_call`: CUPTI, for source lines.
bool state_sums(std::size_t most, bool may_call) {
  Thread* thread = enter();
  if (thread == nullptr) return false;
  s.sources.allow(s.sampler.library(), may_call ? kLinesTogether : 0);
  const std::uint64_t now = now_ns();
  s.stated_ns = now;
  const bool all =
      s.table.take(most, [thread, now](const StallTable::Entry& entry) { return put(thread, entry, now); });
  leave();
  return all;
}

void state_all_sums(bool may_call) {
  const std::uint64_t limit_ns = now_ns() + kWriterLimitMs * 1000000;
  while (!state_sums(StallTable::kEntries, may_call) && now_ns() < limit_ns) {  // the writer makes room
    wake_writer();
    pause_ms(2);
  }
  if (s.table.pending() != 0) skip("sums of stalls that found no room", s.table.pending());
}

void say_totals() {
  const Totals& totals = s.totals;
  char period[32] = "CUPTI's own period";
  if (s.sampler.period_exponent() != 0)
    snprintf(period, sizeof(period), "every 2^%u cycles", s.sampler.period_exponent());
  note("counters",
       "reasons of stalls: %llu samples of warps (%s), %llu in known code, %llu in unknown code, %llu dropped by "
       "the device%s.",
       static_cast<unsigned long long>(totals.all), period, static_cast<unsigned long long>(totals.known),
       static_cast<unsigned long long>(totals.unknown), static_cast<unsigned long long>(totals.dropped),
       totals.inconsistent ? "; some have more samples without an issue than in all" : "");
  if (totals.no_room != 0) skip("samples of stalls: too many places", totals.no_room);
}

// ---- begin and end ------------------------------------------------------------------------------------------------

bool map_table() {
  void* memory = map_memory(StallTable::kBytes);
  if (memory == nullptr)
    return cupti::succeeded(wire::ProfilerCall::kSamplingMemory, static_cast<std::uint32_t>(errno));
  s.table.use(memory);
  return true;
}

void name_reasons() {
  for (std::size_t i = 0; i < s.sampler.reasons().count(); ++i) s.reason_ids[i] = intern(s.sampler.reasons().name(i));
  s.reason_ids[kUnknownReason] = intern("unknown");
  s.unknown_code = intern(kUnknownCode);
}

// On the thread of the program that is about to give the device work. False: not now.
bool begin(void* context) {
  if (context == nullptr || !begin_call()) return false;
  s.context.store(context);
  await_device();
  if (capture_has_begun()) {
    end_call();
    return false;
  }
  s.device = static_cast<std::uint16_t>(device_of(context));
  const bool runs = map_table() && s.sampler.start(context);
  if (runs) name_reasons();
  s.stated_ns = now_ns();
  s.phase.store(runs ? Phase::kRunning : Phase::kEnded);  // who destroys the context must see that it runs
  end_call();
  return true;
}

void say_other_context() {
  static constinit std::atomic<std::uint32_t> said{0};
  if (s.ended.load(std::memory_order_relaxed) == 0 && said.exchange(1, std::memory_order_relaxed) == 0)
    note("counters",
         "reasons of stalls are read of the first context that gave the device work; another one did, too.");
}

}  // namespace

void start_stall_sampling(const Plan& plan) {
  if (plan.stalls != Stalls::kOff) s.phase.store(Phase::kWaiting, std::memory_order_release);
}

void stall_context_created(void* context) {
  void* none = nullptr;
  if (s.phase.load(std::memory_order_acquire) == Phase::kWaiting) s.context.compare_exchange_strong(none, context);
}

void stall_context_ends(void* context) {
  if (context == nullptr || !s.context.compare_exchange_strong(context, nullptr)) return;
  await_end_of_call();
  if (s.phase.load(std::memory_order_acquire) != Phase::kRunning) return;
  s.ended.store(1);
  await_end_of_call();
  note("counters", "reasons of stalls are not read any more: the context that was sampled has ended.");
}

void stall_module_loaded(const pc::Module& code) {
  if (s.phase.load(std::memory_order_acquire) != Phase::kOff) s.sources.keep(code);
}

void stall_capture_begins() {
  if (s.phase.load(std::memory_order_acquire) != Phase::kOff) await_end_of_call();
}

// CUPTI's start hangs the program for good if the device works meanwhile (seen on an H200, with a graph that was being
// replayed). So it is made where the program is about to launch: what was launched before is waited for, and whoever
// else wants to launch waits.
void stall_launch_begins(void* context) {
  Phase phase = s.phase.load(std::memory_order_acquire);
  if (phase == Phase::kWaiting && s.phase.compare_exchange_strong(phase, Phase::kBeginning)) {
    const Measuring measuring;
    if (!begin(context)) s.phase.store(Phase::kWaiting, std::memory_order_release);
    return;
  }
  if (phase == Phase::kRunning && context != s.context.load(std::memory_order_relaxed)) say_other_context();
  if (phase != Phase::kBeginning) return;
  wait_until(kCallLimitMs, [] { return s.phase.load() != Phase::kBeginning; });
}

void look_at_stalls() {
  if (s.phase.load(std::memory_order_acquire) != Phase::kRunning) return;
  const bool may_call = begin_call();
  if (may_call && !fetch_all()) s.phase.store(Phase::kEnded, std::memory_order_release);
  if (now_ns() >= s.stated_ns + kStateEveryNs) state_sums(kStatedTogether, may_call);
  if (may_call) end_call();
}

// What is known is in the log before the stop, which may take longer than the process waits for us.
void finish_stall_sampling() {
  const Phase phase = s.phase.exchange(Phase::kEnded, std::memory_order_acq_rel);
  if (phase <= Phase::kBeginning && s.context.load(std::memory_order_acquire) != nullptr)
    note("counters", "reasons of stalls: the program ended before sampling began.");
  if (s.unknown_code == 0) return;  // it never ran
  const bool may_call = begin_call();
  const bool runs = phase == Phase::kRunning && may_call && fetch_all();
  state_all_sums(may_call);
  if (runs && s.sampler.stop() && fetch_all()) state_all_sums(may_call);
  if (may_call) end_call();
  say_totals();
}

}  // namespace llmprof::collect::counters
