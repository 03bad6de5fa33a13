#include "host/stacks/perf.h"

#include <fmt/format.h>

#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <fstream>
#include <string>
#include <utility>

#include "base/file.h"
#include "wire/byte_reader.h"

namespace llmprof::host {

namespace {

// DWARF numbers in the order in which the kernel gives the registers of kSampledRegisters: ax bx cx dx si di bp sp ip,
// r8 to r15.
constexpr std::array<std::uint8_t, kRegisters> kOrder{0, 3, 2, 1, 4, 5, 6, 7, 16, 8, 9, 10, 11, 12, 13, 14, 15};
constexpr std::uint64_t kAbi64 = 2;  // PERF_SAMPLE_REGS_ABI_64
// Other records end with what identifies a sample: pid and tid, time.
constexpr std::size_t kTailBytes = 16;

bool decode_sample(wire::ByteReader& reader, std::uint16_t misc, PerfRecord& record) {
  PerfSample sample;
  record.pid = reader.fixed<std::uint32_t>();
  record.tid = reader.fixed<std::uint32_t>();
  record.ts_ns = reader.fixed<std::uint64_t>();
  sample.period_ns = reader.fixed<std::uint64_t>();
  sample.in_kernel = (misc & PERF_RECORD_MISC_CPUMODE_MASK) == PERF_RECORD_MISC_KERNEL;
  const auto addresses = reader.fixed<std::uint64_t>();
  if (addresses > reader.left() / sizeof(std::uint64_t)) return false;
  sample.chain = reader.block(addresses * sizeof(std::uint64_t));
  const auto abi = reader.fixed<std::uint64_t>();
  if (abi != 0) {
    for (const std::uint8_t number : kOrder) {
      const auto value = reader.fixed<std::uint64_t>();
      if (abi == kAbi64) sample.registers.set(number, value);
    }
  }
  const auto copied = reader.fixed<std::uint64_t>();
  if (copied > 0) {
    sample.stack = reader.block(copied);
    const auto used = reader.fixed<std::uint64_t>();
    if (used < sample.stack.size()) sample.stack = sample.stack.first(used);
  }
  record.content = sample;
  return reader.ok();
}

bool decode_mapping(wire::ByteReader& reader, std::uint16_t misc, PerfRecord& record) {
  Mapping mapping;
  reader.fixed<std::uint64_t>();  // pid and tid, again in the tail
  mapping.begin = reader.fixed<std::uint64_t>();
  mapping.end = mapping.begin + reader.fixed<std::uint64_t>();
  mapping.file_offset = reader.fixed<std::uint64_t>();
  reader.fixed<std::uint64_t>();  // device
  mapping.inode = reader.fixed<std::uint64_t>();
  reader.fixed<std::uint64_t>();  // generation
  const auto protection = reader.fixed<std::uint32_t>();
  reader.fixed<std::uint32_t>();  // flags
  if (!reader.ok() || (protection & PROT_EXEC) == 0 || reader.left() < kTailBytes) return false;
  if ((misc & PERF_RECORD_MISC_MMAP_BUILD_ID) != 0) mapping.inode = 0;
  const auto name = reader.block(reader.left() - kTailBytes);
  mapping.path.assign(name.begin(), std::find(name.begin(), name.end(), std::uint8_t{0}));
  if (mapping.path == "//anon") mapping.path.clear();
  record.content = PerfMapping{std::move(mapping)};
  return true;
}

bool decode_task(wire::ByteReader& reader, std::uint32_t type, PerfRecord& record) {
  const auto pid = reader.fixed<std::uint32_t>(), parent = reader.fixed<std::uint32_t>();
  const auto tid = reader.fixed<std::uint32_t>();
  record.pid = pid;
  record.tid = tid;
  if (type == PERF_RECORD_FORK) {
    record.content = PerfFork{parent};
  } else {
    record.content = PerfExit{pid == tid};
  }
  return reader.ok();
}

void read_tail(std::span<const std::uint8_t> bytes, PerfRecord& record) {
  if (bytes.size() < kTailBytes) return;
  wire::ByteReader reader(bytes.last(kTailBytes));
  record.pid = reader.fixed<std::uint32_t>();
  record.tid = reader.fixed<std::uint32_t>();
  record.ts_ns = reader.fixed<std::uint64_t>();
}

}  // namespace

std::optional<PerfRecord> decode_record(std::span<const std::uint8_t> bytes) {
  wire::ByteReader reader(bytes);
  const auto header = reader.fixed<perf_event_header>();
  PerfRecord record;
  if (!reader.ok()) return std::nullopt;
  if (header.type != PERF_RECORD_SAMPLE) read_tail(bytes.subspan(sizeof header), record);
  bool good = false;
  switch (header.type) {
    case PERF_RECORD_SAMPLE:
      good = decode_sample(reader, header.misc, record);
      break;
    case PERF_RECORD_MMAP2:
      good = decode_mapping(reader, header.misc, record);
      break;
    case PERF_RECORD_FORK:
    case PERF_RECORD_EXIT:
      good = decode_task(reader, header.type, record);
      break;
    case PERF_RECORD_COMM:
      record.content = PerfExec{};
      good = (header.misc & PERF_RECORD_MISC_COMM_EXEC) != 0;
      break;
    case PERF_RECORD_LOST:
      reader.fixed<std::uint64_t>();
      record.content = PerfLost{reader.fixed<std::uint64_t>()};
      good = reader.ok();
      break;
    default:
      break;
  }
  if (!good) return std::nullopt;
  return record;
}

std::uint64_t time_of_record(std::span<const std::uint8_t> bytes) {
  wire::ByteReader reader(bytes);
  const auto header = reader.fixed<perf_event_header>();
  if (header.type == PERF_RECORD_SAMPLE) {
    reader.fixed<std::uint64_t>();  // pid and tid
    return reader.fixed<std::uint64_t>();
  }
  PerfRecord record;
  if (reader.ok()) read_tail(bytes.subspan(sizeof header), record);
  return record.ts_ns;
}

namespace {

constexpr std::size_t kPageBytes = 4096;
// Of all rings together: machines with hundreds of CPUs get smaller rings. The kernel lets any user lock 516 KiB per
// CPU, which is the user's largest ring and its control page.
constexpr std::size_t kAllRingBytes = 64u << 20, kLargestRing = 512u << 10, kSmallestRing = 128u << 10;
constexpr std::size_t kLargestRingOfRoot = 1u << 20;

// "0-3,8" -> 0 1 2 3 8
std::vector<int> online_cpus() {
  std::ifstream file("/sys/devices/system/cpu/online");
  std::string text;
  std::getline(file, text);
  std::vector<int> cpus;
  for (const char *at = text.data(), *end = at + text.size(); at < end;) {
    int first = 0;
    auto parsed = std::from_chars(at, end, first);
    if (parsed.ec != std::errc{}) break;
    int last = first;
    if (parsed.ptr < end && *parsed.ptr == '-') parsed = std::from_chars(parsed.ptr + 1, end, last);
    for (int cpu = first; cpu <= last; ++cpu) cpus.push_back(cpu);
    at = parsed.ptr + 1;
  }
  if (cpus.empty()) {
    for (int cpu = 0; cpu < static_cast<int>(::sysconf(_SC_NPROCESSORS_ONLN)); ++cpu) cpus.push_back(cpu);
  }
  return cpus;
}

perf_event_attr attributes(const PerfOptions& options, bool kernel) {
  perf_event_attr attr{};
  attr.size = sizeof attr;
  attr.type = PERF_TYPE_SOFTWARE;
  attr.config = PERF_COUNT_SW_TASK_CLOCK;
  attr.sample_period = 1'000'000'000 / std::max<std::uint32_t>(1, options.hz);
  attr.sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_PERIOD | PERF_SAMPLE_CALLCHAIN |
                     PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER;
  attr.exclude_callchain_user = 1;  // that of the program is unwound here, by its tables
  attr.exclude_callchain_kernel = kernel ? 0 : 1;
  attr.sample_regs_user = kSampledRegisters;
  attr.sample_stack_user = options.stack_bytes & ~std::uint32_t{7};
  attr.disabled = attr.enable_on_exec = options.threads.empty() ? 1 : 0;
  attr.inherit = 1;
  attr.exclude_kernel = kernel ? 0 : 1;
  attr.exclude_hv = 1;
  attr.mmap = attr.mmap2 = attr.comm = attr.comm_exec = attr.task = 1;
  attr.sample_id_all = 1;
  attr.use_clockid = 1;
  attr.clockid = CLOCK_MONOTONIC_RAW;
  attr.wakeup_events = 1;  // Python frames are to be read soon after their sample
  return attr;
}

int perf_event_open(const perf_event_attr& attr, pid_t pid, int cpu) {
  return static_cast<int>(::syscall(SYS_perf_event_open, &attr, pid, cpu, -1, PERF_FLAG_FD_CLOEXEC));
}

Error refusal(int error_number) {
  constexpr const char* kWhat = "CPU stacks cannot be sampled (perf_event_open)";
  Error error = base::errno_error(ErrorCode::kPermission, kWhat, error_number);
  switch (error_number) {
    case EACCES:
    case EPERM:
      error.hint =
          "sudo sysctl kernel.perf_event_paranoid=2; in a container also --cap-add PERFMON, or a seccomp profile that "
          "permits perf_event_open";
      break;
    case EMFILE:
      error.hint = "ulimit -n: sampling needs one descriptor per CPU";
      break;
    case ENOSYS:
    case ENOENT:
    case EOPNOTSUPP:
      error.code = ErrorCode::kUnsupported;
      error.hint = "this kernel or sandbox has no perf events; nothing to do";
      break;
    default:
      error.code = ErrorCode::kUnsupported;
  }
  return error;
}

std::uint64_t load_acquire(const __u64& value) { return __atomic_load_n(&value, __ATOMIC_ACQUIRE); }

}  // namespace

PerfEvents::PerfEvents(PerfEvents&& other) noexcept
    : rings_(std::exchange(other.rings_, {})),
      joined_(std::exchange(other.joined_, {})),
      sees_kernel_(other.sees_kernel_) {}

PerfEvents::~PerfEvents() {
  for (const int descriptor : joined_) ::close(descriptor);
  for (const Ring& ring : rings_) {
    if (ring.memory != nullptr) ::munmap(ring.memory, kPageBytes + ring.data_bytes);
    if (ring.descriptor >= 0) ::close(ring.descriptor);
  }
}

Result<PerfEvents> PerfEvents::open(pid_t root, const PerfOptions& options) {
#if !defined(__x86_64__)
  return Error{ErrorCode::kUnsupported, "CPU stacks are sampled on x86-64 only", ""};
#endif
  PerfEvents events;
  const std::vector<int> cpus = online_cpus();
  std::size_t data_bytes = ::geteuid() == 0 ? kLargestRingOfRoot : kLargestRing;
  while (data_bytes > kSmallestRing && data_bytes * cpus.size() > kAllRingBytes) data_bytes /= 2;
  for (const int cpu : cpus) {
    const std::size_t before = events.rings_.size();
    LLMPROF_TRY(events.open_cpu(root, cpu, options, data_bytes));
    if (events.rings_.size() == before) continue;
    for (const pid_t thread : options.threads) {
      if (thread != root) events.join_cpu(thread, cpu, options, events.rings_.back());
    }
  }
  if (events.rings_.empty()) return refusal(ENODEV);
  return events;
}

Result<void> PerfEvents::open_cpu(pid_t root, int cpu, const PerfOptions& options, std::size_t data_bytes) {
  int descriptor = perf_event_open(attributes(options, sees_kernel_), root, cpu);
  if (descriptor < 0 && (errno == EACCES || errno == EPERM) && sees_kernel_) {
    sees_kernel_ = false;
    descriptor = perf_event_open(attributes(options, sees_kernel_), root, cpu);
  }
  if (descriptor < 0 && errno == ENODEV) return {};  // went offline
  if (descriptor < 0) return refusal(errno);
  void* memory = MAP_FAILED;
  for (; data_bytes >= kSmallestRing && memory == MAP_FAILED; data_bytes /= 2) {
    memory = ::mmap(nullptr, kPageBytes + data_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    if (memory != MAP_FAILED) break;
  }
  if (memory == MAP_FAILED) {
    Error error = base::errno_error(ErrorCode::kPermission, "no memory for CPU stack samples", errno);
    error.hint = "raise kernel.perf_event_mlock_kb, or ulimit -l";
    ::close(descriptor);
    return error;
  }
  rings_.push_back({descriptor, static_cast<std::uint8_t*>(memory), data_bytes});
  return {};
}

// A thread that is gone by now, or that we may not see, has no samples.
void PerfEvents::join_cpu(pid_t thread, int cpu, const PerfOptions& options, const Ring& ring) {
  constexpr std::size_t kMostJoined = 16384;  // descriptors: threads x CPUs
  if (joined_.size() >= kMostJoined) return;
  const int descriptor = perf_event_open(attributes(options, sees_kernel_), thread, cpu);
  if (descriptor < 0) return;
  if (::ioctl(descriptor, PERF_EVENT_IOC_SET_OUTPUT, ring.descriptor) != 0) {
    ::close(descriptor);
    return;
  }
  joined_.push_back(descriptor);
}

std::vector<int> PerfEvents::descriptors() const {
  std::vector<int> out;
  for (const Ring& ring : rings_) out.push_back(ring.descriptor);
  return out;
}

void PerfEvents::rest(bool rests) const {
  const auto request = rests ? PERF_EVENT_IOC_DISABLE : PERF_EVENT_IOC_ENABLE;
  for (const Ring& ring : rings_) ::ioctl(ring.descriptor, request, 0);
  for (const int descriptor : joined_) ::ioctl(descriptor, request, 0);
}

// Adds what waits in the ring to waiting_; the new tail.
std::uint64_t PerfEvents::gather(const Ring& ring) {
  auto* control = reinterpret_cast<perf_event_mmap_page*>(ring.memory);
  const std::uint8_t* data = ring.memory + kPageBytes;
  const std::uint64_t head = load_acquire(control->data_head);
  std::uint64_t tail = control->data_tail;
  while (tail < head) {
    const std::size_t at = tail % ring.data_bytes;  // records begin at multiples of 8: a header never wraps
    perf_event_header header{};
    std::memcpy(&header, data + at, sizeof header);
    if (header.size < sizeof header || header.size > head - tail) return head;
    std::span<const std::uint8_t> record(data + at, std::min<std::size_t>(header.size, ring.data_bytes - at));
    if (record.size() < header.size) {
      std::vector<std::uint8_t>& copy = wrapped_.emplace_back(record.begin(), record.end());
      copy.insert(copy.end(), data, data + (header.size - record.size()));
      record = copy;
    }
    waiting_.push_back({time_of_record(record), record});
    tail += header.size;
  }
  return head;
}

void PerfEvents::read(const std::function<void(const PerfRecord&)>& visit) {
  waiting_.clear();
  wrapped_.clear();
  std::vector<std::uint64_t> tails;
  for (const Ring& ring : rings_) tails.push_back(gather(ring));
  if (waiting_.empty()) return;
  std::stable_sort(waiting_.begin(), waiting_.end(),
                   [](const Waiting& a, const Waiting& b) { return a.ts_ns < b.ts_ns; });
  for (const Waiting& waiting : waiting_) {
    if (const auto record = decode_record(waiting.record)) visit(*record);
  }
  for (std::size_t i = 0; i < rings_.size(); ++i) {
    auto* control = reinterpret_cast<perf_event_mmap_page*>(rings_[i].memory);
    __atomic_store_n(&control->data_tail, tails[i], __ATOMIC_RELEASE);
  }
}

}  // namespace llmprof::host
