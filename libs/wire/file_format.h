#pragma once
// How a log lies on disk: a FileHeader, then blocks. A block is a BlockHeader and `payload_bytes` of payload. All
// integers little-endian.

#include <cstdint>

namespace llmprof::wire {

struct FileHeader {
  char magic[8];               // "LLMPROFW"
  std::uint32_t version;       // kWireVersion
  std::uint32_t header_bytes;  // sizeof(FileHeader): an old reader skips what it does not know
  std::uint64_t pid;
  std::uint64_t start_ticks;
  std::uint64_t raw_ns;  // clock pair at creation
  std::uint64_t wall_ns;
  std::uint32_t segment;  // 0, or the number of this log among those that continue each other (kSegment)
  std::uint32_t reserved[2];
  std::uint32_t crc;  // CRC-32C of all bytes before this field
};
static_assert(sizeof(FileHeader) == 64);
inline constexpr char kFileMagic[8] = {'L', 'L', 'M', 'P', 'R', 'O', 'F', 'W'};

struct BlockHeader {
  std::uint32_t magic;          // kBlockMagic
  std::uint32_t sequence;       // 0, 1, 2… in the file; a jump is a gap
  std::uint32_t payload_bytes;  // at most kMaxPayloadBytes
  std::uint32_t records;        // in this block
  std::uint32_t payload_crc;    // CRC-32C of the payload
  std::uint32_t header_crc;     // CRC-32C of the fields above
};
static_assert(sizeof(BlockHeader) == 24);
inline constexpr std::uint32_t kBlockMagic = 0x314B4C42;  // "BLK1"
inline constexpr std::uint32_t kMaxPayloadBytes = 1u << 20;
inline constexpr std::uint32_t kMaxNameBytes = 1u << 16;

inline constexpr std::uint32_t kMaxBlockRecords = 1u << 16;
inline constexpr std::uint32_t kMaxSectionRecords = 1u << 12;

// The payload is a sequence of sections: varint kind (0 = string definitions, else RecordKind), varint thread
// (number of the thread in this log, its kThread record gives the tid; 0 = the collector itself), varint count
// (1 to kMaxSectionRecords), varint bytes (of what follows, so that an unknown kind can be skipped), then the columns
// of that kind one after the other (wire/fields.h), or `count` definitions: varint id, varint length, the bytes.

}  // namespace llmprof::wire
