#pragma once
// Records to bytes. A BlockBuilder fills one block in memory that the caller owns; nothing is allocated, nothing
// fails but for want of room. One thread at a time. The mirror is wire/decode.h.

#include "wire/fields.h"
#include "wire/primitives.h"

namespace llmprof::wire {

// Room that a section of `count` records can take at most.
constexpr std::size_t section_bound(RecordKind kind, std::size_t count) {
  const std::size_t head = 4 * kMaxVarintBytes;
  return head + fields_of(static_cast<std::uint64_t>(kind)).count * (1 + count * kMaxVarintBytes);
}
constexpr std::size_t string_bound(std::size_t length) { return 6 * kMaxVarintBytes + length; }

inline bool is_constant(const Record* const* records, std::size_t count, const Field& field) {
  const std::uint64_t first = load_field(*records[0], field);
  for (std::size_t i = 1; i < count; ++i) {
    if (load_field(*records[i], field) != first) return false;
  }
  return true;
}

// `before` is the column before, if there is one.
inline std::uint8_t* put_column(std::uint8_t* at, const Record* const* records, std::size_t count, const Field& field,
                                const Field* before) {
  if (is_constant(records, count, field)) {
    *at++ = static_cast<std::uint8_t>(ColumnMode::kConstant);
    return put_varint(at, load_field(*records[0], field));
  }
  *at++ = static_cast<std::uint8_t>(field.mode);
  std::uint64_t previous = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t value = load_field(*records[i], field);
    if (field.mode == ColumnMode::kBeside) previous = before != nullptr ? load_field(*records[i], *before) : 0;
    at = put_varint(at, field.mode == ColumnMode::kPlain ? value : zigzag(value - previous));
    previous = value;
  }
  return at;
}

class BlockBuilder {
 public:
  // `memory` holds the block header and the payload. At most sizeof(BlockHeader) + kMaxPayloadBytes of it are used.
  BlockBuilder(std::uint8_t* memory, std::size_t bytes) : memory_(memory), capacity_(bytes) {
    if (capacity_ > sizeof(BlockHeader) + kMaxPayloadBytes) capacity_ = sizeof(BlockHeader) + kMaxPayloadBytes;
    clear();
  }

  void clear() {
    size_ = sizeof(BlockHeader);
    records_ = 0;
  }
  bool empty() const { return size_ == sizeof(BlockHeader); }
  std::size_t room() const { return capacity_ - size_; }
  std::uint32_t records() const { return records_; }

  // Defines a name. False: no room, nothing was added.
  bool add_string(StringId id, const char* text, std::size_t length) {
    if (string_bound(length) > room()) return false;
    std::uint8_t* const body = put_head(0, 0, 1);
    std::uint8_t* at = put_varint(body, id);
    at = put_varint(at, length);
    __builtin_memcpy(at, text, length);
    close_section(body, at + length);
    return true;
  }

  // Adds 1 to kMaxSectionRecords records of one thread, all of `kind`. False: no room, nothing was added.
  bool add_records(RecordKind kind, std::uint32_t thread, const Record* const* records, std::size_t count) {
    if (section_bound(kind, count) > room() || records_ + count > kMaxBlockRecords) return false;
    std::uint8_t* const body = put_head(static_cast<std::uint64_t>(kind), thread, count);
    std::uint8_t* at = body;
    const FieldList list = fields_of(static_cast<std::uint64_t>(kind));
    for (std::size_t i = 0; i < list.count; ++i) {
      at = put_column(at, records, count, list.fields[i], i > 0 ? &list.fields[i - 1] : nullptr);
    }
    close_section(body, at);
    records_ += static_cast<std::uint32_t>(count);
    return true;
  }

  // Writes the block header. The block is [data(), data() + size()) until clear().
  void finish(std::uint32_t sequence) {
    BlockHeader header{};
    header.magic = kBlockMagic;
    header.sequence = sequence;
    header.payload_bytes = static_cast<std::uint32_t>(size_ - sizeof(BlockHeader));
    header.records = records_;
    header.payload_crc = crc32c(memory_ + sizeof(BlockHeader), header.payload_bytes);
    header.header_crc = crc32c(&header, offsetof(BlockHeader, header_crc));
    __builtin_memcpy(memory_, &header, sizeof(header));
  }
  const std::uint8_t* data() const { return memory_; }
  std::size_t size() const { return size_; }

 private:
  std::uint8_t* put_head(std::uint64_t kind, std::uint64_t thread, std::uint64_t count) {
    std::uint8_t* at = put_varint(memory_ + size_, kind);
    at = put_varint(at, thread);
    return put_varint(at, count) + 3;  // close_section fills these three
  }
  void close_section(std::uint8_t* body, const std::uint8_t* end) {
    put_varint3(body - 3, static_cast<std::uint32_t>(end - body));
    size_ = static_cast<std::size_t>(end - memory_);
  }

  std::uint8_t* memory_;
  std::size_t capacity_;
  std::size_t size_ = 0;
  std::uint32_t records_ = 0;
};

// Completes a file header: the caller has set pid, start_ticks, raw_ns, wall_ns.
inline void seal_file_header(FileHeader* header) {
  __builtin_memcpy(header->magic, kFileMagic, sizeof(kFileMagic));
  header->version = kWireVersion;
  header->header_bytes = sizeof(FileHeader);
  header->crc = crc32c(header, offsetof(FileHeader, crc));
}

}  // namespace llmprof::wire
