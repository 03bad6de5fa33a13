#include "collect/writer/output.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "collect/lifecycle.h"
#include "collect/names.h"
#include "collect/os.h"
#include "collect/stress_point.h"
#include "collect/writer/log_file.h"

namespace llmprof::collect {
namespace {

using wire::LossKind;
using wire::Record;
using wire::RecordKind;

constexpr std::size_t kFlushBytes = 64u << 10;       // a block is written when it has this much, or at the next flush
constexpr std::uint64_t kReservedBytes = 16u << 10;  // beyond the size limit, for the records that say so
constexpr std::uint32_t kCollectorThread = 0;

// Records the program made. What the collector notes itself is not missed when it is lost.
bool is_event(RecordKind kind) {
  return kind == RecordKind::kRange || kind == RecordKind::kGemm || kind == RecordKind::kLaunch ||
         (kind >= RecordKind::kKernel && kind <= RecordKind::kGraphLaunch) ||
         (kind >= RecordKind::kGpuGemm && kind <= RecordKind::kApi);
}

// Losses whose count is events that hooks have seen.
bool counts_events(LossKind kind) {
  return kind == LossKind::kBufferFull || kind == LossKind::kWriteFailed || kind == LossKind::kSizeLimit ||
         kind == LossKind::kForkedAfterCuda || kind == LossKind::kThreadTableFull;
}

WindowPlan plan_of(const Settings& settings) {
  WindowPlan plan;
  plan.from_ns = settings.window_from_ns;
  plan.until_ns = settings.window_until_ns;
  plan.lasts_ns = settings.window_lasts_ns;
  plan.waits_for_range = settings.window_range[0] != '\0';
  plan.counts_steps = settings.step_patterns[0] != '\0';
  plan.first_step = settings.first_step;
  plan.end_step = settings.end_step;
  plan.switched = settings.control != 0 || settings.profiler_api != 0;
  return plan;
}

}  // namespace

void count_dropped(std::uint64_t events) {
  auto reason = static_cast<LossKind>(g.drop_reason.load(std::memory_order_relaxed));
  if (reason == LossKind::kNone) reason = LossKind::kBufferFull;  // recording had not begun yet: no buffers
  count_loss(reason, events);
}

Output::Output(Shared* shared)
    : shared_(shared),
      block_(shared->block, sizeof(shared->block)),
      log_(++g.logs),
      selection_(&shared->selection, Window(plan_of(g.settings)), g.settings.keep_ms != 0),
      names_(shared),
      segment_begin_ns_(now_ns()) {
  segments_.begun(0, segment_begin_ns_);
  if (selection_.window().is_switched()) off_since_ns_ = segment_begin_ns_;
}

void Output::process(bool ended) {
  if (!ended) {
    process_ = blank(RecordKind::kProcess);
    wire::ProcessRecord& process = process_.process;
    process.pid = static_cast<std::uint64_t>(getpid());
    process.parent_pid = static_cast<std::uint64_t>(getppid());
    process.start_ticks = start_ticks();
    char* const scratch = shared_->scratch;
    const ssize_t length = readlink("/proc/self/exe", scratch, sizeof(shared_->scratch));
    if (length > 0) process.executable = intern_bytes(scratch, static_cast<std::size_t>(length));
    std::size_t bytes = read_file("/proc/self/cmdline", scratch, sizeof(shared_->scratch));
    if (bytes > 0 && scratch[bytes - 1] == '\0') --bytes;
    process.arguments = intern_bytes(scratch, bytes);
    process.host = intern(host_name());
    process.rank = intern(rank_variable());
    bytes = read_launcher_variables(scratch, sizeof(shared_->scratch));
    if (bytes > 0) process.variables = intern_bytes(scratch, bytes);
  }
  process_.process.ts_ns = now_ns();
  process_.process.ended = ended ? 1 : 0;
  add(process_, kCollectorThread);
}

void Output::clock_sync() {
  Record record = blank(RecordKind::kClockSync);
  const std::uint64_t before = now_ns();
  record.clock_sync.wall_ns = read_clock_ns(CLOCK_REALTIME);
  const std::uint64_t after = now_ns();
  record.clock_sync.raw_ns = before + (after - before) / 2;
  record.clock_sync.error_ns = (after - before + 1) / 2;
  add(record, kCollectorThread);
}

void Output::write(const Record* records, std::uint32_t count, std::uint32_t thread, std::uint32_t tid) {
  const Record* by_kind[wire::kRecordKinds][kChunkRecords];
  std::uint32_t counts[wire::kRecordKinds] = {};
  for (std::uint32_t i = 0; i < count; ++i) {
    const auto kind = static_cast<std::uint32_t>(records[i].kind);
    define_names(records[i]);
    if (records[i].kind == RecordKind::kThread && tid != kAnyTid && records[i].thread.tid != tid) {
      add(records[i], kCollectorThread);  // this thread named another one
    } else if (kind < wire::kRecordKinds) {
      by_kind[kind][counts[kind]++] = &records[i];
    }
  }
  for (std::uint32_t kind = 1; kind < wire::kRecordKinds; ++kind) {
    if (counts[kind] > 0) add_section(static_cast<RecordKind>(kind), thread, by_kind[kind], counts[kind]);
  }
}

void Output::count_refused(const Record* records, std::uint32_t count) {
  std::uint64_t events = 0;
  for (std::uint32_t i = 0; i < count; ++i) events += is_event(records[i].kind) ? 1 : 0;
  count_refused(events);
}

void Output::count_refused(std::uint64_t events) {
  refused_events_ += events;
  count_dropped(events);
}

void Output::add(const Record& record, std::uint32_t thread) {
  define_names(record);
  const Record* one = &record;
  add_section(record.kind, thread, &one, 1);
}

void Output::add_section(RecordKind kind, std::uint32_t thread, const Record* const* records, std::uint32_t count) {
  make_room(wire::section_bound(kind, count));
  const bool last_words = kind == RecordKind::kProcess || kind == RecordKind::kCost;
  if (stopped_ && !last_words) return is_event(kind) ? count_refused(std::uint64_t{count}) : void();
  block_.add_records(kind, thread, records, count);
  if (is_event(kind)) events_in_block_ += count;
}

void Output::define_names(const Record& record) {
  const wire::FieldList list = wire::fields_of(static_cast<std::uint64_t>(record.kind));
  for (std::size_t i = 0; i < list.count; ++i) {
    if (list.fields[i].role == wire::FieldRole::kValue) continue;
    const auto id = static_cast<std::uint32_t>(wire::load_field(record, list.fields[i]));
    list.fields[i].role == wire::FieldRole::kName ? define_name(id) : define_record(id);
  }
}

// As deep as a stack: the outermost frame comes first.
void Output::define_record(wire::DefinitionId id) {
  if (!shared_->definitions.valid(id) || shared_->definitions.emitted(id) == log_ || stopped_) return;
  shared_->definitions.emitted(id) = log_;
  add(shared_->definitions.record(id), kCollectorThread);
}

void Output::define_name(wire::StringId id) {
  if (!shared_->strings.valid(id) || shared_->strings.name(id).emitted == log_) return;
  StringTable::Name& name = shared_->strings.name(id);
  name.emitted = log_;
  make_room(wire::string_bound(name.length));
  block_.add_string(id, shared_->strings.text(id), name.length);
}

// New domains, categories and libraries, before any record that was made after them.
void Output::define_tables() {
  const std::uint32_t definitions = g.definitions.load(std::memory_order_acquire);
  if (definitions == definitions_seen_ || stopped_) return;
  definitions_seen_ = definitions;
  for (std::uint32_t i = 0; i < kMaxDomains; ++i) {
    Domain& domain = shared_->domains[i];
    const wire::StringId name = domain.name.load(std::memory_order_acquire);
    if (name == 0 || domain.emitted == log_) continue;
    domain.emitted = log_;
    Record record = blank(RecordKind::kDomain);
    record.domain = {i, name};
    add(record, kCollectorThread);
  }
  for (Category& category : shared_->categories) {
    if (category.ready.load(std::memory_order_acquire) != 2 || category.emitted == log_) continue;
    category.emitted = log_;
    Record record = blank(RecordKind::kCategory);
    record.category = {category.domain, category.category, category.name};
    add(record, kCollectorThread);
  }
  for (Library& library : shared_->libraries) define_library(library);
  define_facts();
}

void Output::define_facts() {
  const std::uint32_t count = shared_->fact_count.load(std::memory_order_acquire);
  for (std::uint32_t i = 0; i < count && i < kMaxFacts; ++i) {
    Fact& fact = shared_->facts[i];
    if (fact.ready.load(std::memory_order_acquire) == 0 || fact.emitted == log_) continue;
    fact.emitted = log_;
    add(fact.record, kCollectorThread);
  }
}

void Output::define_library(Library& library) {
  const wire::StringId path = library.path.load(std::memory_order_acquire);
  const std::uint32_t hooked = library.hooked.load(std::memory_order_acquire);
  if (path == 0 || (library.emitted == log_ && library.emitted_hooked == hooked)) return;
  library.emitted = log_;
  library.emitted_hooked = hooked;
  Record record = blank(RecordKind::kLibrary);
  record.library = {now_ns(), path, static_cast<std::uint8_t>(hooked)};
  add(record, kCollectorThread);
  if (hooked != 0) return;
  make_room(wire::section_bound(RecordKind::kLoss, 1));
  loss(LossKind::kBlasNotHooked, 1, path, now_ns());
}

void Output::make_room(std::size_t bytes) {
  if (block_.room() < bytes || block_.size() > kFlushBytes) write_block();
}

// Counts stay pending until a block that holds them is in the log. Once recording has stopped they are reported when
// they have doubled, and at the end: a few records, however long the program goes on.
void Output::losses(bool final) {
  bool due = final || !stopped_;
  count_loss(LossKind::kOutsideWindow, selection_.outside() - outside_told_);
  outside_told_ = selection_.outside();
  for (std::uint32_t kind = 1; kind < kLossKinds; ++kind) {
    const std::uint64_t lost = g.lost[kind].exchange(0, std::memory_order_acquire);
    pending_[kind] += lost;
    lost_events_ += counts_events(static_cast<LossKind>(kind)) ? lost : 0;
    due = due || pending_[kind] > reported_[kind];
  }
  if (!due) return;
  std::uint64_t details[kLossKinds] = {};
  for (std::uint32_t kind = 1; kind < kLossKinds; ++kind) {
    if (pending_[kind] != 0) details[kind] = define_detail(static_cast<LossKind>(kind));
  }
  stress_point();
  make_room(kLossKinds * wire::section_bound(RecordKind::kLoss, 1));
  losses_in_block_ = true;
  for (std::uint32_t kind = 1; kind < kLossKinds; ++kind) {
    if (pending_[kind] == 0) continue;
    loss(static_cast<LossKind>(kind), pending_[kind], details[kind], now_ns());
  }
}

// The last detail of this kind. Some are names. To be asked once a record: the next one may have another detail by now.
std::uint64_t Output::define_detail(LossKind kind) {
  if (kind == LossKind::kWriteFailed) return static_cast<std::uint64_t>(last_error_);
  const std::uint64_t detail = g.loss_details[static_cast<std::uint32_t>(kind)].load(std::memory_order_acquire);
  if (wire::detail_of(kind) == wire::LossDetail::kText) define_name(static_cast<wire::StringId>(detail));
  return detail;
}

void Output::loss(LossKind kind, std::uint64_t count, std::uint64_t detail, std::uint64_t ts_ns) {
  Record record = blank(RecordKind::kLoss);
  record.loss = {ts_ns, count, detail, kind};
  const Record* one = &record;
  block_.add_records(RecordKind::kLoss, kCollectorThread, &one, 1);
}

void Output::flush(bool final) {
  define_tables();
  losses(final);
  if (write_block()) return settle_losses();
  // The program goes on. The log ends here, but for a record that says so. What was cut off may have made room for it;
  // if not, the block before gives way: a log that ends without a word is worse.
  losses(true);
  if (write_block()) return settle_losses();
  if (cut_last_append() != 0) {
    take_back_last_block();
    losses(true);
    if (write_block()) return settle_losses();
  }
  told_folder_ = true;  // the log cannot say it
  note_off(last_error_ != 0 ? last_error_ : EFBIG, "log");
}

// The last block is no longer in the log: its events are lost now, and what it said about losses must be said again.
void Output::take_back_last_block() {
  --sequence_;
  const auto reason = static_cast<LossKind>(g.drop_reason.load(std::memory_order_relaxed));
  refused_events_ += last_events_;
  count_loss(reason, last_events_);
  last_events_ = 0;
  for (std::uint32_t kind = 1; kind < kLossKinds; ++kind) {
    pending_[kind] += last_losses_[kind];
    reported_[kind] -= last_losses_[kind];
    last_losses_[kind] = 0;
  }
}

void Output::settle_losses() {
  if (!losses_in_block_) return;
  losses_in_block_ = false;
  if (told_folder_) withdraw_note();  // the log says it after all
  told_folder_ = false;
  for (std::uint32_t kind = 1; kind < kLossKinds; ++kind) {
    last_losses_[kind] = pending_[kind];
    reported_[kind] += pending_[kind];
    pending_[kind] = 0;
  }
}

// True: the block is in the log, or there was none.
bool Output::write_block() {
  if (block_.empty()) return true;
  const std::size_t bytes = block_.size();
  const std::uint64_t limit = stopped_ ? g.settings.max_bytes + kReservedBytes : g.settings.max_bytes;
  const std::uint64_t events = events_in_block_;
  const bool full = bytes > limit || log_bytes() > limit - bytes || (!stopped_ && folder_is_full());
  int error = 0;
  block_.finish(sequence_);
  const bool written = !full && append_to_log(block_.data(), bytes, &error);
  block_.clear();
  events_in_block_ = 0;
  if (written) {
    ++sequence_;  // a number is used up by a block in the log only: a gap means damage
    last_events_ = events;
    memset(last_losses_, 0, sizeof(last_losses_));
    return true;
  }
  losses_in_block_ = false;
  if (!stopped_) {
    stopped_ = true;
    last_error_ = error;
    refused_events_ += events;
    count_loss(full ? LossKind::kSizeLimit : LossKind::kWriteFailed, events);
    stop_recording(full ? LossKind::kSizeLimit : LossKind::kWriteFailed);
  }
  return false;
}

}  // namespace llmprof::collect
