// The parts of Output that a plain recording passes through untouched: windows, segments, and what recording cost.

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "collect/cuda/gpu.h"
#include "collect/lifecycle.h"
#include "collect/names.h"
#include "collect/os.h"
#include "collect/state.h"
#include "collect/writer/glob.h"
#include "collect/writer/log_file.h"
#include "collect/writer/output.h"
#include "collect/writer/switches.h"

namespace llmprof::collect {

namespace {

using wire::LossKind;
using wire::Record;
using wire::RecordKind;

constexpr std::uint64_t kNsPerMs = 1000000;
constexpr char kSwitchedOff[] = "recording was switched off";
constexpr std::uint64_t kSegmentsPerLimit = 8;  // a log is at most this part of --max-size

// What threads record in calls of CUDA and its libraries.
bool is_gpu_call(RecordKind kind) {
  return kind == RecordKind::kLaunch || (kind >= RecordKind::kGraphNode && kind <= RecordKind::kApi);
}

}  // namespace

// What the selection keeps, gathered per thread: columns of many records are smaller than many columns of one.
class Output::Batch {
 public:
  explicit Batch(Output* output) : output_(output) {}
  ~Batch() { flush(); }
  Batch(const Batch&) = delete;
  Batch& operator=(const Batch&) = delete;

  void keep(const Record& record, std::uint32_t thread) {
    if (thread != thread_ || count_ == kChunkRecords) flush();
    thread_ = thread;
    records_[count_++] = record;
  }

 private:
  void flush() {
    if (count_ > 0) output_->write(records_, count_, thread_, kAnyTid);
    count_ = 0;
  }

  Output* output_;
  std::uint32_t thread_ = 0;
  std::uint32_t count_ = 0;
  Record records_[kChunkRecords];
};

void Output::read_switches() {
  if (!selection_.window().is_switched()) return;
  switches_.read([this](const Switch& at) {
    if (at.on && off_since_ns_ != 0 && at.ts_ns > off_since_ns_) state_gap(off_since_ns_, at.ts_ns, kSwitchedOff);
    if (at.on) off_since_ns_ = 0;
    if (!at.on && off_since_ns_ == 0) off_since_ns_ = at.ts_ns;
    selection_.switch_at(at.ts_ns, at.on);
  });
  // CUPTI is on as soon as a start is known, which is before its time, and off after the time of a stop: what it brings
  // is then judged by the exact times. (The program's own switch is quicker than we are.)
  const Window& window = selection_.window();
  if (g.settings.control != 0) want_gpu(window.begin_ns() != kNever && window.end_ns() > now_ns());
}

void Output::want_gpu(bool on) {
  if (gpu_wanted_ == static_cast<int>(on)) return;
  gpu_wanted_ = static_cast<int>(on);
  set_gpu_recording(on);
}

void Output::watch(const Record* records, std::uint32_t count, const Source& source) {
  names_.refresh();
  for (std::uint32_t i = 0; i < count; ++i) selection_.watch(records[i], source, names_);
}

void Output::records(const Record* records, std::uint32_t count, const Source& source) {
  count_events(records, count);
  if (stopped_) return count_refused(records, count);
  define_tables();
  if (g.settings.keep_ms != 0) keep_nodes(records, count);
  if (!selection_.active()) return write(records, count, source.number, source.tid);
  names_.refresh();
  Batch batch(this);
  for (std::uint32_t i = 0; i < count; ++i) selection_.take(records[i], source, names_, batch);
}

void Output::device_records(const Record* records, std::uint32_t count) {
  if (stopped_) return count_refused(records, count);
  define_tables();
  const Record* kept[kDeviceBatch];
  std::uint32_t kept_count = 0;
  for (std::uint32_t i = 0; i < count; ++i) {
    if (!selection_.keeps(records[i].kernel.begin_ns, records[i].kernel.end_ns)) continue;
    define_names(records[i]);
    kept[kept_count++] = &records[i];
  }
  if (kept_count != 0) add_section(records[0].kind, 0, kept, kept_count);
}

void Output::count_events(const Record* records, std::uint32_t count) {
  for (std::uint32_t i = 0; i < count; ++i) {
    range_events_ += records[i].kind == RecordKind::kRange ? 1 : 0;
    gemm_events_ += records[i].kind == RecordKind::kGemm ? 1 : 0;
    gpu_events_ += is_gpu_call(records[i].kind) ? 1 : 0;
  }
}

void Output::thread_ended(const Source& source) {
  if (selection_.active()) {
    Batch batch(this);
    if (!selection_.thread_ended(source, batch)) return;
  }
  Record record = blank(RecordKind::kThread);
  record.thread.ts_ns = now_ns();
  record.thread.tid = source.tid;
  record.thread.ended = 1;
  add(record, source.number);
}

void Output::drained(std::uint32_t slots) {
  slots_ = slots;
  if (!selection_.active() || stopped_) return;
  Batch batch(this);
  selection_.drained(now_ns(), slots, batch);
}

void Output::finish() {
  if (off_since_ns_ != 0) {
    state_gap(off_since_ns_, now_ns(), kSwitchedOff);
    define_tables();
  }
  if (selection_.active()) selection_.finish(slots_);
}

void Output::cost() {
  Record record = blank(RecordKind::kCost);
  record.cost.ts_ns = now_ns();
  // Which kind of event was dropped before it came here is not known; nearly all events are ranges.
  record.cost.range_events = range_events_ + (lost_events_ - refused_events_);
  record.cost.gemm_events = gemm_events_;
  record.cost.log_bytes = closed_bytes_ + log_bytes();
  record.cost.gpu_events = gpu_events_;
  record.cost.writer_cpu_ns = read_clock_ns(CLOCK_THREAD_CPUTIME_ID);
  add(record, 0);
  counted_events_ = range_events_ + gemm_events_ + gpu_events_;
}

void Output::cost_of_new() {
  if (range_events_ + gemm_events_ + gpu_events_ != counted_events_) cost();
}

void Output::rotate() {
  if (g.settings.keep_ms == 0 || stopped_) return;
  const std::uint64_t now = now_ns();
  const bool old = now - segment_begin_ns_ >= g.settings.segment_ms * kNsPerMs;
  if (old || log_bytes() > g.settings.max_bytes / kSegmentsPerLimit) begin_segment(now);
  for (std::uint32_t number = 0; number != Segments::kNone;) {
    number = segments_.expired(now, g.settings.keep_ms * kNsPerMs, g.settings.max_bytes);
    if (number != Segments::kNone) remove_segment(number);
  }
}

// A log that stands on its own: it says again whose it is, what was lost before, and what is open.
void Output::begin_segment(std::uint64_t now) {
  cost();
  flush(false);
  if (stopped_) return;
  segments_.closed(log_bytes());
  closed_bytes_ += log_bytes();
  if (!open_segment(segment_ + 1)) {
    last_error_ = errno;
    note_off(last_error_, "segment");
    stopped_ = true;
    return stop_recording(LossKind::kWriteFailed);
  }
  segments_.begun(++segment_, now);
  segment_begin_ns_ = now;
  log_ = ++g.logs;
  sequence_ = 0;
  definitions_seen_ = ~0u;
  last_events_ = 0;
  memset(last_losses_, 0, sizeof(last_losses_));
  add(process_, 0);
  Record record = blank(RecordKind::kSegment);
  record.segment = {now, segment_};
  add(record, 0);
  repeat_losses(now);
  define_tables();
  clock_sync();
  Batch batch(this);
  selection_.begin_log(log_, batch);
  selection_.drained(now, slots_, batch);
  repeat_nodes();
}

void Output::keep_nodes(const Record* records, std::uint32_t count) {
  KeptNodes& nodes = shared_->nodes;
  for (std::uint32_t i = 0; i < count; ++i) {
    if (records[i].kind == RecordKind::kGraphNode) nodes.records[nodes.made++ % KeptNodes::kMost] = records[i];
  }
}

// As of the collector itself: the threads that made them may be gone.
void Output::repeat_nodes() {
  const KeptNodes& nodes = shared_->nodes;
  const auto count = static_cast<std::uint32_t>(nodes.made < KeptNodes::kMost ? nodes.made : KeptNodes::kMost);
  for (std::uint32_t i = 0; i < count; i += kChunkRecords)
    write(nodes.records + i, count - i < kChunkRecords ? count - i : kChunkRecords, 0, kAnyTid);
}

// The logs that said so may be deleted. The time tells a reader of several logs that these are repetitions.
void Output::repeat_losses(std::uint64_t ts_ns) {
  for (std::uint32_t kind = 1; kind < kLossKinds; ++kind) {
    if (reported_[kind] == 0) continue;
    const std::uint64_t detail = define_detail(static_cast<LossKind>(kind));
    make_room(wire::section_bound(RecordKind::kLoss, 1));
    loss(static_cast<LossKind>(kind), reported_[kind], detail, ts_ns);
  }
}

namespace {

constexpr const char kStepCategory[] = "@step";  // a line of the patterns: ranges of category step in domain llmprof

bool has_line(const char* lines, const char* wanted) {
  const std::size_t length = strlen(wanted);
  for (const char* at = lines; at != nullptr; at = strchr(at, '\n')) {
    if (*at == '\n') ++at;
    if (strncmp(at, wanted, length) == 0 && (at[length] == '\n' || at[length] == '\0')) return true;
  }
  return false;
}

// Lines that begin with '!' hold everywhere but in domain llmprof, which says itself what its ranges are.
bool matches_any(const char* lines, const char* text, bool plain) {
  while (*lines != '\0') {
    const std::size_t length = strcspn(lines, "\n");
    const std::size_t mark = *lines == '!' ? 1 : 0;
    if (length > mark && (mark == 1) == plain && matches(lines + mark, length - mark, text)) return true;
    lines += length + (lines[length] == '\n' ? 1 : 0);
  }
  return false;
}

}  // namespace

void RangeNames::refresh() {
  const std::uint32_t definitions = g.definitions.load(std::memory_order_acquire);
  if (definitions == definitions_seen_) return;
  definitions_seen_ = definitions;
  const auto text = [&](wire::StringId id) { return shared_->strings.text(id); };
  for (std::uint32_t i = 1; i < kMaxDomains && domain_ == 0; ++i) {
    const wire::StringId name = shared_->domains[i].name.load(std::memory_order_acquire);
    if (name != 0 && strcmp(text(name), "llmprof") == 0) domain_ = i;
  }
  const bool counts_steps = has_line(g.settings.step_patterns, kStepCategory);
  for (const Category& category : shared_->categories) {
    if (category.ready.load(std::memory_order_acquire) != 2 || category.domain != domain_ || domain_ == 0) continue;
    if (counts_steps && strcmp(text(category.name), "step") == 0) step_category_ = category.category;
    if (strcmp(text(category.name), "model") == 0) model_category_ = category.category;
    if (strcmp(text(category.name), "parallel") == 0) parallel_category_ = category.category;
  }
}

std::uint8_t RangeNames::compare(wire::StringId name) const {
  if (!shared_->strings.valid(name)) return kKnown;
  const char* text = shared_->strings.text(name);
  std::uint8_t verdict = kKnown;
  if (matches_any(g.settings.step_patterns, text, false)) verdict |= kStep;
  if (matches_any(g.settings.step_patterns, text, true)) verdict |= kPlainStep;
  const char* awaited = g.settings.window_range;
  if (*awaited != '\0' && matches(awaited, strlen(awaited), text)) verdict |= kAwaited;
  return verdict;
}

namespace {

constexpr char kFile[] = "/control";

// Times with the switch in their lowest bit; 0 is a slot that is being written.
constexpr std::uint32_t kSlots = 256;
constinit std::atomic<std::uint64_t> slots[kSlots]{};
constinit std::atomic<std::uint32_t> noted{0};
constinit std::uint32_t seen = 0;  // writer only; a forked child goes on from here

// Opened for each look: a program may close descriptors that are not its own.
std::uint64_t read_from(std::uint64_t offset, char* out, std::uint64_t capacity) {
  char path[kMaxFolderBytes + sizeof(kFile)];
  const std::size_t length = strlen(g.settings.folder);
  memcpy(path, g.settings.folder, length);
  memcpy(path + length, kFile, sizeof(kFile));
  const int file = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (file < 0) return 0;
  const ssize_t count = pread(file, out, capacity, static_cast<off_t>(offset));
  close(file);
  return count > 0 ? static_cast<std::uint64_t>(count) : 0;
}

}  // namespace

void note_switch(bool on) {
  const std::uint64_t value = (now_ns() & ~1ull) | (on ? 1 : 0);
  slots[noted.fetch_add(1, std::memory_order_acq_rel) % kSlots].store(value, std::memory_order_release);
}

bool Switches::next_of_program(Switch* out) {
  if (seen == noted.load(std::memory_order_acquire)) return false;
  const std::uint64_t value = slots[seen % kSlots].exchange(0, std::memory_order_acq_rel);
  if (value == 0) return false;  // next time
  ++seen;
  *out = {value & ~1ull, (value & 1) != 0};
  return true;
}

void Switches::refill() {
  at_ = size_ = 0;
  if (g.settings.control != 0) size_ = read_from(offset_, buffer_, sizeof(buffer_));
}

bool Switches::next_of_file(Switch* out) {
  while (at_ < size_) {
    const void* end = memchr(buffer_ + at_, '\n', size_ - at_);
    if (end == nullptr) {
      if (size_ - at_ == sizeof(buffer_)) offset_ += sizeof(buffer_);  // no line is so long
      return false;
    }
    const std::uint64_t length = static_cast<std::uint64_t>(static_cast<const char*>(end) - (buffer_ + at_));
    const bool good = parse_switch(buffer_ + at_, length, out);
    at_ += length + 1;
    offset_ += length + 1;
    if (good) return true;
  }
  return false;
}

}  // namespace llmprof::collect
