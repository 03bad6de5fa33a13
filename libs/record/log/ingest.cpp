#include "record/log/ingest.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/fields.h"
#include "base/numbers.h"
#include "base/strings.h"
#include "hw/environment.h"
#include "hw/resolve.h"
#include "hw/telemetry/telemetry.h"
#include "record/log/cuda_ingest.h"
#include "record/log/ledger.h"

namespace llmprof::record {
namespace {

void fill_in(hw::Device& known, const hw::Device& said) {
  if (known.name.empty()) known.name = said.name;
  if (known.chip.empty()) known.chip = said.chip;
  if (known.units == 0) known.units = said.units;
  if (known.memory_bytes == 0) known.memory_bytes = said.memory_bytes;
}

}  // namespace

std::string to_text(const Uuid& uuid) {
  if (!uuid.known()) return "";
  return fmt::format("GPU-{:08x}-{:04x}-{:04x}-{:04x}-{:012x}", uuid.high >> 32, uuid.high >> 16 & 0xffff,
                     uuid.high & 0xffff, uuid.low >> 48, uuid.low & 0xffff'ffff'ffff);
}

void CudaDevices::add(const hw::Device& device, std::vector<hw::Peak> peaks, trace::Id& next_id) {
  Uuid uuid;
  hw::parse_uuid(device.uuid, uuid.high, uuid.low);
  devices_.push_back({next_id++, uuid, device, std::move(peaks)});
}

trace::Id CudaDevices::find(const Uuid& uuid, const hw::Device& device, trace::Id& next_id) {
  auto known = devices_.end();
  if (uuid.known()) {
    known = std::find_if(devices_.begin(), devices_.end(), [&](const Known& other) { return other.uuid == uuid; });
  }
  if (known == devices_.end()) {  // the first of this name that nobody has claimed
    known = std::find_if(devices_.begin(), devices_.end(), [&](const Known& other) {
      return (!other.uuid.known() || !uuid.known()) && !device.name.empty() && other.device.name == device.name;
    });
  }
  if (known == devices_.end() && devices_.size() < kMost) {
    devices_.push_back({next_id++, uuid, device, hw::with_spec_peaks(device, {})});
    return devices_.back().id;
  }
  if (known == devices_.end()) return devices_.back().id;
  if (!known->uuid.known()) known->uuid = uuid;
  fill_in(known->device, device);
  return known->id;
}

bool CudaDevices::has(const std::string& name) const {
  return std::any_of(devices_.begin(), devices_.end(), [&](const Known& known) { return known.device.name == name; });
}

void CudaDevices::write(trace::RunWriter& writer) const {
  for (const Known& known : devices_) write_device(writer, known.id, known.device, known.peaks, to_text(known.uuid));
}

void write_device(trace::RunWriter& writer, trace::Id id, const hw::Device& device, const std::vector<hw::Peak>& peaks,
                  const std::string& uuid) {
  const auto copy = [&]<class To>(To& to, const auto& from) {
    if constexpr (std::is_same_v<To, trace::Name>) {
      to = from.empty() ? trace::Name{} : writer.strings().intern(from);
    } else {
      to = from;
    }
  };
  trace::DeviceRow row;
  base::for_each_shared_field(row, device, copy);
  row.id = id;
  if (device.kind.empty()) row.kind = writer.strings().intern("cpu");
  copy(row.uuid, uuid);
  writer.add(row);
  for (const hw::Peak& peak : peaks) {
    trace::PeakRow peak_row{.device_id = id};
    base::for_each_shared_field(peak_row, peak, copy);
    writer.add(peak_row);
  }
}

namespace {

// How many ranks the launcher of a process has started. Of several the innermost: torchrun under srun, MPI in a pod.
trace::OptionalInt world_in(std::string_view variables) {
  const std::vector<std::string_view> words = base::split(variables, ' ');
  for (const std::string_view name : {"WORLD_SIZE=", "OMPI_COMM_WORLD_SIZE=", "SLURM_STEP_NUM_TASKS=", "PMI_SIZE="}) {
    for (const std::string_view word : words) {
      if (word.starts_with(name)) return base::parse_number<std::int64_t>(word.substr(name.size()));
    }
  }
  return {};
}

}  // namespace

std::string command_line(std::string_view joined) {
  const std::vector<std::string_view> words = base::split(joined, '\0');
  return fmt::format("{}", fmt::join(hw::redact({words.begin(), words.end()}), " "));
}

LogIngest::LogIngest(RunRows& rows, LogFacts facts, const wire::FileHeader& header)
    : rows_(rows),
      facts_(std::move(facts)),
      header_(header),
      names_(rows.writer.strings()),
      process_id_(rows.next_id++),
      ranges_(rows.writer, names_, process_id_, facts_.window, rows.next_id, rows.requests),
      times_{facts_.window},
      layouts_(rows.writer.strings()) {
  trace::Strings& strings = rows.writer.strings();
  constexpr const char* kTypes[] = {nullptr, "float32", "float64", "complex64", "complex128"};
  for (std::size_t i = 1; i < std::size(types_); ++i) types_[i] = strings.intern(kTypes[i]);
}

LogIngest::~LogIngest() = default;

void LogIngest::update(LogFacts facts) {
  facts_ = std::move(facts);
  ranges_.set_window(facts_.window);
  static_cast<TimeWindow&>(times_) = facts_.window;
  if (cuda_ != nullptr) cuda_->set_window(facts_.window);
}

void LogIngest::next_log() {
  continued_ = true;
  if (cuda_ != nullptr) cuda_->next_log();
  segment_ns_ = 0;
}

void LogIngest::receive(wire::RecordKind kind, std::uint32_t number, std::span<const wire::Record> records) {
  if (kind == wire::RecordKind::kRange) return take_ranges(number, records);
  if (kind == wire::RecordKind::kGemm) return take_gemms(number, records);
  if (CudaIngest::takes(kind)) return take_cuda(kind, number, records);
  for (const wire::Record& record : records) take_other(kind, number, record);
}

void LogIngest::take_cuda(wire::RecordKind kind, std::uint32_t number, std::span<const wire::Record> records) {
  if (cuda_ == nullptr) cuda_ = std::make_unique<CudaIngest>(rows_, names_, process_id_, facts_.window, ranges_);
  // What threads record begins with its time.
  static_assert(offsetof(wire::Record, launch.begin_ns) == offsetof(wire::Record, graph_node.ts_ns) &&
                offsetof(wire::Record, launch.begin_ns) == offsetof(wire::Record, gpu_gemm.begin_ns) &&
                offsetof(wire::Record, launch.begin_ns) == offsetof(wire::Record, device_memory.ts_ns) &&
                offsetof(wire::Record, launch.begin_ns) == offsetof(wire::Record, api.begin_ns) &&
                offsetof(wire::Record, launch.begin_ns) == offsetof(wire::Record, counter_window.begin_ns) &&
                offsetof(wire::Record, launch.begin_ns) == offsetof(wire::Record, counter.ts_ns));
  cuda_->take(kind, number == 0 ? 0 : thread(number, records.front().launch.begin_ns).id, records);
}

void LogIngest::take_other(wire::RecordKind kind, std::uint32_t number, const wire::Record& record) {
  switch (kind) {
    case wire::RecordKind::kThread:
      return take_thread(number, record.thread);
    case wire::RecordKind::kProcess:
      return take_process(record.process);
    case wire::RecordKind::kClockSync:
      return take_clock(record.clock_sync);
    case wire::RecordKind::kLoss:
      return take_loss(record.loss);
    case wire::RecordKind::kDomain:
      return names_.define_domain(record.domain);
    case wire::RecordKind::kCategory:
      return names_.define_category(record.category);
    case wire::RecordKind::kLibrary:
      return take_library(record.library);
    case wire::RecordKind::kCost:
      return take_cost(record.cost);
    case wire::RecordKind::kSegment:
      segment_ns_ = record.segment.ts_ns;
      return ranges_.continue_at(static_cast<std::int64_t>(std::min<std::uint64_t>(segment_ns_, INT64_MAX)));
    default:
      ++unknown_;
  }
}

LogIngest::Thread& LogIngest::thread(std::uint32_t number, std::uint64_t ts_ns) {
  Thread& thread = threads_[number];
  if (thread.id == 0) thread.id = rows_.next_id++;
  if (facts_.window.holds(ts_ns)) thread.begin_ns = std::min(thread.begin_ns, static_cast<std::int64_t>(ts_ns));
  return thread;
}

void LogIngest::take_ranges(std::uint32_t number, std::span<const wire::Record> records) {
  ranges_.take(records, number, thread(number, records.front().range.ts_ns).id);
  for (const wire::Record& record : records) {
    if (facts_.window.holds(record.range.ts_ns)) note_time(record.range.ts_ns);
  }
}

void LogIngest::take_gemms(std::uint32_t number, std::span<const wire::Record> records) {
  const trace::Id thread_id = thread(number, records.front().gemm.begin_ns).id;
  for (const wire::Record& record : records) {
    const wire::GemmRecord& call = record.gemm;
    if (!times_.keeps(call.begin_ns, call.end_ns)) continue;
    trace::KernelRow kernel;
    kernel.id = rows_.next_id++;
    fill(kernel, call);
    kernel.name = names_.kernel_name(call.function);
    kernel.device_id = rows_.cpu_id;
    kernel.thread_id = thread_id;
    rows_.writer.add(kernel);

    trace::GemmRow gemm;
    gemm.id = rows_.next_id++;
    gemm.kernel_id = kernel.id;
    gemm.thread_id = thread_id;
    fill(gemm, call, &names_);
    const auto type = static_cast<std::size_t>(call.type);
    gemm.type_a = gemm.type_b = gemm.type_c = type < std::size(types_) ? types_[type] : trace::Name{};
    layouts_.set(gemm, call);
    rows_.writer.add(gemm);
    ++rows_.counts.kernels;
    ++rows_.counts.gemms;
    note_time(call.end_ns);
  }
}

void LogIngest::take_thread(std::uint32_t number, const wire::ThreadRecord& record) {
  if (number == 0) {  // one thread named another
    names_by_tid_[record.tid] = record.name;
    return;
  }
  Thread& known = thread(number, record.ended != 0 ? UINT64_MAX : record.ts_ns);
  known.tid = static_cast<std::int64_t>(record.tid);
  if (record.name != 0) known.name = record.name;
  if (record.ended != 0 && facts_.window.holds(record.ts_ns)) known.end_ns = static_cast<std::int64_t>(record.ts_ns);
}

void LogIngest::take_process(const wire::ProcessRecord& record) {
  if (record.ended != 0) {
    if (facts_.window.holds(record.ts_ns)) process_end_ns_ = record.ts_ns;
    return;
  }
  process_ = record;
}

void LogIngest::take_clock(const wire::ClockSyncRecord& record) {
  if (!times_.accepts(record.raw_ns)) return;
  rows_.writer.add(trace::ClockSyncRow{static_cast<std::int64_t>(record.raw_ns),
                                       static_cast<std::int64_t>(record.wall_ns),
                                       static_cast<std::int64_t>(record.error_ns), process_id_});
}

void LogIngest::take_library(const wire::LibraryRecord& record) {
  constexpr std::size_t kMostFiles = 256;  // of all logs
  if (record.hooked == wire::kLibraryIsModelFile && rows_.model_files.size() < kMostFiles) {
    rows_.model_files.push_back({std::string(rows_.writer.strings().text(names_.name(record.path))),
                                 fmt::format("opened by process {}", header_.pid)});
  }
}

void LogIngest::take_cost(const wire::CostRecord& record) {
  if (!times_.accepts(record.ts_ns)) return;
  trace::CollectorCostRow row;
  fill(row, record);
  row.process_id = process_id_;
  row.range_event_ns = rows_.range_event_ns;
  row.gemm_event_ns = rows_.gemm_event_ns;
  rows_.writer.add(row);
}

void LogIngest::take_loss(const wire::LossRecord& record) {
  const auto kind = static_cast<std::size_t>(record.kind);
  if (!trace::is_of_collector(kind)) {
    ++unknown_;
    return;
  }
  // A log begins with what was lost before it; the log before it said so too.
  if (continued_ && segment_ns_ != 0 && record.ts_ns == segment_ns_) return;
  const std::string detail = loss_detail(record);
  if (record.kind == wire::LossKind::kBlasNotHooked && !not_hooked_.insert(detail).second) return;
  const auto count = static_cast<std::int64_t>(std::min<std::uint64_t>(record.count, INT64_MAX / 2));
  rows_.ledger.add(static_cast<trace::Loss>(kind), count, process_id_, detail);
}

std::string LogIngest::loss_detail(const wire::LossRecord& record) const {
  switch (wire::detail_of(record.kind)) {
    case wire::LossDetail::kErrno:
      return std::strerror(static_cast<int>(record.detail & 0xffff));
    case wire::LossDetail::kText:
      return std::string(names_.text(static_cast<wire::StringId>(record.detail)));
    case wire::LossDetail::kCupti:
      return cupti_error_text(record.detail);
    case wire::LossDetail::kProfiler:
      return profiler_error_text(record.detail);
    default:
      return "";
  }
}

void LogIngest::finish(const LogStats& stats) {
  if (cuda_ != nullptr) {
    cuda_->finish();
    last_ns_ = std::max(last_ns_, cuda_->last_ns());
    rows_.counts.kernels += cuda_->counts().kernels;
    rows_.counts.gemms += cuda_->counts().gemms;
    rows_.counts.graph_launches += cuda_->counts().graph_launches;
  }
  const auto end_ns = static_cast<std::int64_t>(process_end_ns_);
  ranges_.finish(std::max(last_ns_, end_ns));
  write_process();
  write_threads();
  write_losses(stats);
  rows_.counts.ranges += ranges_.counts().ranges;
  rows_.counts.records += static_cast<std::int64_t>(stats.records);
  ++rows_.counts.processes;
}

void LogIngest::write_process() {
  trace::ProcessRow row;
  row.id = process_id_;
  row.pid = static_cast<std::int64_t>(process_.pid != 0 ? process_.pid : header_.pid);
  if (process_.parent_pid != 0) row.parent_pid = static_cast<std::int64_t>(process_.parent_pid);
  row.host = names_.name(process_.host);
  if (process_.rank != 0) row.rank = base::parse_number<std::int64_t>(names_.text(process_.rank));
  if (process_.variables != 0) {
    row.variables = names_.name(process_.variables);
    row.world = world_in(names_.text(process_.variables));
  }
  row.executable = names_.name(process_.executable);
  if (process_.arguments != 0) {
    row.arguments = rows_.writer.strings().intern(command_line(names_.text(process_.arguments)));
  }
  row.begin_ns = static_cast<std::int64_t>(process_.ts_ns != 0 ? process_.ts_ns : header_.raw_ns);
  for (const auto& [number, known] : threads_) row.begin_ns = std::min(row.begin_ns, known.begin_ns);
  if (process_end_ns_ != 0) row.end_ns = static_cast<std::int64_t>(process_end_ns_);
  row.exit_status = facts_.exit_status;
  row.injected = true;
  row.log = rows_.writer.strings().intern(facts_.name);
  rows_.process_rows.push_back(row);
  LogImage image{.pid = row.pid,
                 .start_ticks = static_cast<std::int64_t>(header_.start_ticks),
                 .begin_ns = row.begin_ns,
                 .executable = row.executable,
                 .process_id = process_id_};
  for (const auto& [thread_number, known] : threads_) image.threads[known.tid] = known.id;
  rows_.images.push_back(std::move(image));
}

void LogIngest::write_threads() {
  for (const auto& [number, thread] : threads_) {
    const auto given = names_by_tid_.find(static_cast<std::uint64_t>(thread.tid));
    trace::ThreadRow row;
    row.id = thread.id;
    row.process_id = process_id_;
    row.tid = thread.tid;
    row.name = names_.name(given != names_by_tid_.end() ? given->second : thread.name);
    row.begin_ns = thread.begin_ns != INT64_MAX ? thread.begin_ns : static_cast<std::int64_t>(header_.raw_ns);
    if (thread.end_ns != 0) row.end_ns = thread.end_ns;
    rows_.writer.add(row);
    ++rows_.counts.threads;
  }
}

void LogIngest::write_losses(const LogStats& stats) {
  const auto add = [&](trace::Loss loss, std::uint64_t count, const std::string& detail = "") {
    rows_.ledger.add(loss, static_cast<std::int64_t>(count), process_id_, detail);
  };
  const RangeCounts& ranges = ranges_.counts();
  add(trace::Loss::kOpenRange, static_cast<std::uint64_t>(ranges.open));
  add(trace::Loss::kUnbalancedPop, static_cast<std::uint64_t>(ranges.unbalanced));
  const CudaCounts cuda = cuda_ != nullptr ? cuda_->counts() : CudaCounts();
  add(trace::Loss::kBadTime, static_cast<std::uint64_t>(ranges.bad_times + times_.bad_times + cuda.bad_times));
  add(trace::Loss::kUnknownRecord,
      stats.unknown_records + static_cast<std::uint64_t>(unknown_ + ranges.unknown + cuda.unknown));
  add(trace::Loss::kLaunchLost, static_cast<std::uint64_t>(cuda.launch_lost));
  add(trace::Loss::kCuptiDropped, static_cast<std::uint64_t>(cuda.not_estimated), "of launches that were only noted");
  add(trace::Loss::kGraphUnknown, static_cast<std::uint64_t>(cuda.graph_unknown));
  if (cuda_ != nullptr) add(trace::Loss::kLostName, cuda_->lost_stacks(), "stacks of launches");
  if (cuda_ != nullptr) cuda_->add_losses(rows_.ledger);
  add(trace::Loss::kLostName, names_.lost_names());
  add(trace::Loss::kOutsideWindow, static_cast<std::uint64_t>(ranges.too_old + times_.too_old + cuda.too_old));
  add(trace::Loss::kDamagedBlock, stats.damaged_bytes, facts_.name);
  // With damage in the file, the missing blocks are what was damaged.
  if (stats.damaged_bytes == 0) add(trace::Loss::kMissingBlock, stats.missing_blocks, facts_.name);
  // One that said its end may not be gone yet: nothing is missing of it.
  if (facts_.still_running && process_end_ns_ == 0) return add(trace::Loss::kStillRunning, 1);
  add(trace::Loss::kTornTail, stats.torn_bytes, facts_.name);
  // Also after exec: what the collector had not written yet went with the old image.
  if (process_end_ns_ == 0) add(trace::Loss::kAbnormalEnd, 1);
}

}  // namespace llmprof::record
