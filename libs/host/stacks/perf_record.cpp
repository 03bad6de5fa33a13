#include "host/stacks/perf_record.h"

#include <linux/perf_event.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <string>

#include "host/stacks/byte_reader.h"

namespace llmprof::host {
namespace {

// DWARF numbers in the order in which the kernel gives the registers of kSampledRegisters: ax bx cx dx si di bp sp ip,
// r8 to r15.
constexpr std::array<std::uint8_t, kRegisters> kOrder{0, 3, 2, 1, 4, 5, 6, 7, 16, 8, 9, 10, 11, 12, 13, 14, 15};
constexpr std::uint64_t kAbi64 = 2;  // PERF_SAMPLE_REGS_ABI_64
// Other records end with what identifies a sample: pid and tid, time.
constexpr std::size_t kTailBytes = 16;

bool decode_sample(ByteReader& reader, std::uint16_t misc, PerfRecord& record) {
  PerfSample sample;
  record.pid = reader.fixed<std::uint32_t>();
  record.tid = reader.fixed<std::uint32_t>();
  record.ts_ns = reader.fixed<std::uint64_t>();
  sample.period_ns = reader.fixed<std::uint64_t>();
  sample.in_kernel = (misc & PERF_RECORD_MISC_CPUMODE_MASK) == PERF_RECORD_MISC_KERNEL;
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

bool decode_mapping(ByteReader& reader, std::uint16_t misc, PerfRecord& record) {
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

bool decode_task(ByteReader& reader, std::uint32_t type, PerfRecord& record) {
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
  ByteReader reader(bytes.last(kTailBytes));
  record.pid = reader.fixed<std::uint32_t>();
  record.tid = reader.fixed<std::uint32_t>();
  record.ts_ns = reader.fixed<std::uint64_t>();
}

}  // namespace

std::optional<PerfRecord> decode_record(std::span<const std::uint8_t> bytes) {
  ByteReader reader(bytes);
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
  ByteReader reader(bytes);
  const auto header = reader.fixed<perf_event_header>();
  if (header.type == PERF_RECORD_SAMPLE) {
    reader.fixed<std::uint64_t>();  // pid and tid
    return reader.fixed<std::uint64_t>();
  }
  PerfRecord record;
  if (reader.ok()) read_tail(bytes.subspan(sizeof header), record);
  return record.ts_ns;
}

}  // namespace llmprof::host
