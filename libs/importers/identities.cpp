#include "importers/identities.h"

#include <algorithm>

#include "hw/catalog.h"
#include "hw/resolve.h"
#include "trace/strings.h"

namespace llmprof::importers {
namespace {

constexpr std::size_t kMostHeld = 200'000;  // threads; a trace with more has numbers, not threads

std::int64_t shifted(std::int64_t ns, const FileMap& map) {
  std::int64_t sum = 0;
  return __builtin_add_overflow(ns, map.shift_ns, &sum) ? map.first_ns : sum;
}

// Times of a process or thread: 0 means that the file does not say.
template <class Row>
void settle_times(Row& row, const FileMap& map) {
  const bool unknown = row.begin_ns == 0 && map.has_times;
  row.begin_ns = unknown ? map.first_ns : shifted(row.begin_ns, map);
  if (row.end_ns) row.end_ns = shifted(*row.end_ns, map);
  if (row.end_ns && *row.end_ns < row.begin_ns) row.end_ns.reset();
}

template <class T>
void fill_in(T& known, const T& said) {
  if (known == T{}) known = said;
}

}  // namespace

void Identities::begin_file(Role role) {
  role_ = role;
  origin_ = {.file = origin_.file + 1, .rank = "", .host = ""};
  first_process_ = processes_.size();
  first_thread_ = threads_.size();
  merged_process_ = false;
  if (role != Role::kTrace) index_threads();
}

void Identities::set_origin(std::string_view rank, std::string_view host) {
  if (!rank.empty()) origin_.rank = rank;
  if (!host.empty()) origin_.host = host;
}

// Within one file, devices are distinguished by the file itself.
bool Identities::of_same_rank(const Origin& other) const {
  const bool other_host = !origin_.host.empty() && !other.host.empty() && origin_.host != other.host;
  return origin_.file != other.file && !origin_.rank.empty() && origin_.rank == other.rank && !other_host;
}

void Identities::index_threads() {
  for (const trace::ThreadRow& row : threads_) thread_ids_.emplace(std::pair{row.process_id, row.tid}, row.id);
}

void Identities::add(const trace::ProcessRow& row, FileMap& map) {
  if (row.rank && origin_.rank.empty()) origin_.rank = std::to_string(*row.rank);
  const auto same = std::find_if(processes_.begin(), processes_.end(), [&](const Process& other) {
    return role_ != Role::kTrace && row.pid != 0 && other.row.pid == row.pid;
  });
  const bool only = std::count_if(processes_.begin(), processes_.end(),
                                  [&](const Process& other) { return other.row.pid == row.pid; }) == 1;
  if (same == processes_.end() || !only) {  // two hosts may count alike: then nobody knows whose it is
    processes_.push_back({row, role_});
    return;
  }
  merged_process_ = true;
  map.processes.emplace(row.id, same->row.id);
  fill_in(same->row.host, row.host);
  fill_in(same->row.executable, row.executable);
  fill_in(same->row.arguments, row.arguments);
  fill_in(same->row.rank, row.rank);
  fill_in(same->row.world, row.world);
  fill_in(same->row.parent_pid, row.parent_pid);
}

void Identities::add(const trace::ThreadRow& row, FileMap& map) {
  if (role_ != Role::kTrace) {
    if (const auto same = thread_ids_.find({row.process_id, row.tid}); same != thread_ids_.end()) {
      map.threads.emplace(row.id, same->second);
      return;
    }
  }
  if (threads_.size() < kMostHeld) {
    threads_.push_back(row);
  } else {
    trace::ThreadRow late = row;
    settle_times(late, map);
    writer_.add(late);
  }
}

Identities::Device* Identities::same_device(const trace::DeviceRow& row) {
  if (row.uuid.id != 0) {
    const auto same =
        std::find_if(devices_.begin(), devices_.end(), [&](const Device& other) { return other.row.uuid == row.uuid; });
    if (same != devices_.end()) return &*same;
  }
  if (!row.ordinal) return nullptr;
  Device* found = nullptr;
  for (Device& other : devices_) {
    const bool contradicts = (row.uuid.id != 0 && other.row.uuid.id != 0) || other.row.kind != row.kind ||
                             (row.name.id != 0 && other.row.name.id != 0 && row.name != other.row.name);
    const bool both_traces = role_ == Role::kTrace && other.role == Role::kTrace;
    const bool beside = (role_ == Role::kTrace) != (other.role == Role::kTrace);
    if (!(beside || (both_traces && of_same_rank(other.origin))) || contradicts || other.row.ordinal != row.ordinal)
      continue;
    if (found != nullptr) return nullptr;  // several ranks, each with its own number 0
    found = &other;
  }
  return found;
}

void Identities::add(const trace::DeviceRow& row, FileMap& map) {
  Device* same = same_device(row);
  if (same == nullptr) {
    devices_.push_back({row, role_, origin_});
    return;
  }
  map.devices.emplace(row.id, same->row.id);
  trace::DeviceRow& known = same->row;
  fill_in(known.name, row.name);
  fill_in(known.chip, row.chip);
  fill_in(known.units, row.units);
  fill_in(known.memory_bytes, row.memory_bytes);
  fill_in(known.cache_bytes, row.cache_bytes);
  fill_in(known.clock_mhz, row.clock_mhz);
  fill_in(known.driver, row.driver);
  fill_in(known.uuid, row.uuid);
  fill_in(known.ordinal, row.ordinal);
}

void Identities::end_file(const FileMap& map) {
  for (std::size_t i = first_process_; i < processes_.size(); ++i) settle_times(processes_[i].row, map);
  for (std::size_t i = first_thread_; i < threads_.size(); ++i) settle_times(threads_[i], map);
  std::unordered_map<trace::Id, std::int64_t> pid_of_process;
  for (const Process& process : processes_) pid_of_process.emplace(process.row.id, process.row.pid);
  for (std::size_t i = first_thread_; i < threads_.size(); ++i) {
    const auto pid = pid_of_process.find(threads_[i].process_id);
    if (pid != pid_of_process.end()) pids_.emplace(threads_[i].id, pid->second);
  }
}

trace::Id Identities::only_process() const {
  trace::Id only = 0;
  for (const Process& process : processes_) {
    if (process.role != Role::kTrace) continue;
    if (only != 0) return 0;
    only = process.row.id;
  }
  return only;
}

std::int64_t Identities::pid_of_thread(trace::Id thread) const {
  const auto found = pids_.find(thread);
  return found == pids_.end() ? 0 : found->second;
}

void Identities::write() {
  for (const Process& process : processes_) writer_.add(process.row);
  for (const trace::ThreadRow& row : threads_) writer_.add(row);
  for (const Device& device : devices_) write_device(device.row);
}

// Numbers of the data sheet where the file has none, and its peaks.
void Identities::write_device(trace::DeviceRow row) {
  trace::Strings& strings = writer_.strings();
  const std::string name(strings.text(row.name));
  if (const hw::DeviceSpec* spec = strings.text(row.kind) == "gpu" ? hw::find_device(name) : nullptr) {
    const hw::Device known = hw::device_of(*spec);
    fill_in(row.units, std::int64_t{known.units});
    fill_in(row.memory_bytes, std::int64_t{known.memory_bytes});
    fill_in(row.cache_bytes, std::int64_t{known.cache_bytes});
    if (row.chip.id == 0 && !known.chip.empty()) row.chip = strings.intern(known.chip);
    write_peaks(row, name);
  }
  writer_.add(row);
}

void Identities::write_peaks(const trace::DeviceRow& row, std::string_view name) {
  trace::Strings& strings = writer_.strings();
  hw::Device device;
  device.kind = "gpu";
  device.name = name;
  for (const hw::Peak& peak : hw::with_spec_peaks(device, {})) {
    writer_.add(trace::PeakRow{row.id, strings.intern(peak.quantity), strings.intern(peak.type), peak.value,
                               strings.intern(peak.unit), strings.intern(peak.source), strings.intern(peak.method)});
  }
}

}  // namespace llmprof::importers
