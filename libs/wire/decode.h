#pragma once
// Bytes to records. Trusts nothing: every length is checked against the bytes that are left, nothing is allocated,
// and what does not match its checksum is never handed out. All views point into the caller's bytes.
//
//   FileHeader header;
//   if (read_file_header(file, &header) != HeaderStatus::kOk) …            // not a log, torn, or newer
//   BlockReader blocks(file, header.header_bytes);
//   for (Step step = blocks.next(); step.kind != StepKind::kEnd; step = blocks.next()) {
//     if (step.kind != StepKind::kBlock) { … count step.bytes as damaged or torn …; continue; }
//     if (step.missing_blocks != 0) …                                       // blocks lost before this one
//     SectionReader sections(step.block);
//     Section section;
//     while (sections.next(&section)) {
//       if (section.kind == 0) { StringReader strings(section); StringDefinition def; while (strings.next(&def)) … }
//       else if (!is_known(section)) …                                      // section.count records of a newer kind
//       else if (decode_records(section, records)) …                       // records[0 … section.count)
//     }
//     if (!sections.complete()) …                                           // malformed though its checksum is right
//   }

#include <cstring>

#include "wire/fields.h"
#include "wire/primitives.h"

namespace llmprof::wire {

struct Bytes {
  const std::uint8_t* data = nullptr;
  std::size_t size = 0;
};

// ---- the file header ------------------------------------------------------------------------------------------

enum class HeaderStatus : std::uint8_t {
  kOk,
  kTooShort,  // fewer bytes than a header: the process was killed at once
  kBadMagic,  // not a capture log
  kNewer,     // written by a newer llmprof; *header says which version
  kBadCrc,    // a log whose header is damaged; blocks may still be read from sizeof(FileHeader) on
};

inline HeaderStatus read_file_header(Bytes file, FileHeader* header) {
  if (file.size < sizeof(FileHeader)) return HeaderStatus::kTooShort;
  std::memcpy(header, file.data, sizeof(FileHeader));
  if (std::memcmp(header->magic, kFileMagic, sizeof(kFileMagic)) != 0) return HeaderStatus::kBadMagic;
  const bool intact = header->crc == crc32c(header, offsetof(FileHeader, crc));
  if (intact && header->version > kWireVersion) return HeaderStatus::kNewer;
  if (!intact || header->header_bytes < sizeof(FileHeader)) return HeaderStatus::kBadCrc;
  return HeaderStatus::kOk;
}

// ---- blocks ---------------------------------------------------------------------------------------------------

struct Block {
  std::uint32_t sequence = 0;
  std::uint32_t records = 0;  // that the sections hold together
  Bytes payload;
};

enum class StepKind : std::uint8_t {
  kBlock,     // `block` is intact
  kDamage,    // `bytes` at `offset` belong to no intact block; reading goes on behind them
  kTornTail,  // `bytes` at `offset` are the beginning of a block that was never completed; nothing follows
  kEnd,
};

struct Step {
  StepKind kind = StepKind::kEnd;
  std::uint64_t offset = 0;          // where in the file
  std::uint64_t bytes = 0;           // how many: the whole block, or the damaged stretch
  std::uint32_t missing_blocks = 0;  // kBlock: blocks that should have come before this one and did not
  Block block;
};

// Walks the blocks of a log. A damaged stretch is left out by searching for the next block that is intact as a whole
// and comes later in sequence, so no byte of a damaged block is ever taken for data.
class BlockReader {
 public:
  BlockReader(Bytes file, std::uint64_t first_block, std::uint32_t first_sequence = 0)
      : file_(file), at_(first_block < file.size ? first_block : file.size), next_sequence_(first_sequence) {}

  Step next() {
    if (at_ == file_.size) return {};
    Step step;
    if (read_block(at_, &step)) return accept(step);
    if (is_torn(at_)) return consume(StepKind::kTornTail, file_.size);
    for (std::uint64_t at = find_magic(at_ + 1); at != file_.size; at = find_magic(at + 1)) {
      if (read_block(at, &step) || is_torn(at)) return consume(StepKind::kDamage, at);
    }
    return consume(StepKind::kDamage, file_.size);
  }

 private:
  Step accept(Step step) {
    step.missing_blocks = step.block.sequence - next_sequence_;
    next_sequence_ = step.block.sequence + 1;
    at_ += step.bytes;
    return step;
  }
  Step consume(StepKind kind, std::uint64_t end) {
    Step step;
    step.kind = kind;
    step.offset = at_;
    step.bytes = end - at_;
    at_ = end;
    return step;
  }

  bool read_header(std::uint64_t at, BlockHeader* header) const {
    if (file_.size - at < sizeof(BlockHeader)) return false;
    std::memcpy(header, file_.data + at, sizeof(BlockHeader));
    return header->magic == kBlockMagic && header->header_crc == crc32c(header, offsetof(BlockHeader, header_crc)) &&
           header->payload_bytes <= kMaxPayloadBytes && header->records <= kMaxBlockRecords &&
           header->sequence >= next_sequence_;
  }

  bool read_block(std::uint64_t at, Step* step) const {
    BlockHeader header;
    if (!read_header(at, &header)) return false;
    const std::uint64_t payload_at = at + sizeof(BlockHeader);
    if (file_.size - payload_at < header.payload_bytes) return false;
    const Bytes payload{file_.data + payload_at, header.payload_bytes};
    if (header.payload_crc != crc32c(payload.data, payload.size)) return false;
    step->kind = StepKind::kBlock;
    step->offset = at;
    step->bytes = sizeof(BlockHeader) + header.payload_bytes;
    step->block = {header.sequence, header.records, payload};
    return true;
  }

  // The file ends inside a block header, or inside the payload that an intact header announces.
  bool is_torn(std::uint64_t at) const {
    BlockHeader header;
    const std::uint64_t left = file_.size - at;
    if (left < sizeof(BlockHeader)) return std::memcmp(file_.data + at, &kBlockMagic, left < 4 ? left : 4) == 0;
    return read_header(at, &header) && left - sizeof(BlockHeader) < header.payload_bytes;
  }

  std::uint64_t find_magic(std::uint64_t at) const {
    constexpr int kFirstByte = kBlockMagic & 0xff;
    while (at < file_.size) {
      const void* hit = std::memchr(file_.data + at, kFirstByte, file_.size - at);
      if (hit == nullptr) return file_.size;
      at = static_cast<std::uint64_t>(static_cast<const std::uint8_t*>(hit) - file_.data);
      const std::uint64_t left = file_.size - at;
      if (std::memcmp(file_.data + at, &kBlockMagic, left < 4 ? left : 4) == 0) return at;
      ++at;
    }
    return file_.size;
  }

  Bytes file_;
  std::uint64_t at_;
  std::uint32_t next_sequence_;
};

// ---- sections -------------------------------------------------------------------------------------------------

struct Section {
  std::uint64_t kind = 0;  // 0: string definitions; else a RecordKind, perhaps of a newer version
  std::uint32_t thread = 0;
  std::uint32_t count = 0;
  Bytes body;
};

inline bool is_known(const Section& section) { return fields_of(section.kind).count != 0; }

class SectionReader {
 public:
  explicit SectionReader(const Block& block)
      : at_(block.payload.data), end_(block.payload.data + block.payload.size), records_left_(block.records) {}

  // False at the end, or where the payload is malformed; complete() tells the two apart.
  bool next(Section* section) {
    std::uint64_t kind = 0, thread = 0, count = 0, bytes = 0;
    const std::uint8_t* at = at_;
    if (at == end_) return false;
    at = get_varint(at, end_, &kind);
    if (at != nullptr) at = get_varint(at, end_, &thread);
    if (at != nullptr) at = get_varint(at, end_, &count);
    if (at != nullptr) at = get_varint(at, end_, &bytes);
    if (at == nullptr || bytes > static_cast<std::size_t>(end_ - at) || count == 0 || count > kMaxSectionRecords ||
        thread > 0xffffffffu || (kind != 0 && count > records_left_)) {
      return false;
    }
    if (kind != 0) records_left_ -= static_cast<std::uint32_t>(count);
    *section = {kind, static_cast<std::uint32_t>(thread), static_cast<std::uint32_t>(count), {at, bytes}};
    at_ = at + bytes;
    return true;
  }

  bool complete() const { return at_ == end_ && records_left_ == 0; }

 private:
  const std::uint8_t* at_;
  const std::uint8_t* end_;
  std::uint32_t records_left_;
};

// ---- string definitions ---------------------------------------------------------------------------------------

struct StringDefinition {
  StringId id = 0;
  const char* text = nullptr;  // any bytes, not terminated
  std::size_t length = 0;
};

class StringReader {
 public:
  explicit StringReader(const Section& section)
      : at_(section.body.data), end_(section.body.data + section.body.size), left_(section.count) {}

  bool next(StringDefinition* definition) {
    std::uint64_t id = 0, length = 0;
    if (left_ == 0) return false;
    const std::uint8_t* at = get_varint(at_, end_, &id);
    if (at != nullptr) at = get_varint(at, end_, &length);
    if (at == nullptr || length > static_cast<std::size_t>(end_ - at) || id > 0xffffffffu || id == 0) return false;
    *definition = {static_cast<StringId>(id), reinterpret_cast<const char*>(at), length};
    at_ = at + length;
    --left_;
    return true;
  }

  bool complete() const { return left_ == 0; }

 private:
  const std::uint8_t* at_;
  const std::uint8_t* end_;
  std::uint32_t left_;
};

// ---- records --------------------------------------------------------------------------------------------------

// Reads one column into records[0 … count); returns the end of it, or nullptr if it is malformed. `before` is the
// column before, which is read already, if there is one.
inline const std::uint8_t* get_column(const std::uint8_t* at, const std::uint8_t* end, const Field& field,
                                      const Field* before, Record* records, std::size_t count) {
  const std::uint8_t mode = *at++;
  std::uint64_t value = 0;
  if (mode == static_cast<std::uint8_t>(ColumnMode::kConstant)) {
    at = get_varint(at, end, &value);
    if (at == nullptr || !fits(value, field.width)) return nullptr;
    for (std::size_t i = 0; i < count; ++i) store_field(records[i], field, value);
    return at;
  }
  if (mode > static_cast<std::uint8_t>(ColumnMode::kBeside)) return nullptr;
  const bool plain = mode == static_cast<std::uint8_t>(ColumnMode::kPlain);
  const bool beside = mode == static_cast<std::uint8_t>(ColumnMode::kBeside);
  std::uint64_t previous = 0;
  for (std::size_t i = 0; i < count; ++i) {
    at = get_varint(at, end, &value);
    if (at == nullptr) return nullptr;
    if (beside) previous = before != nullptr ? load_field(records[i], *before) : 0;
    if (!plain) value = previous + unzigzag(value);
    if (!fits(value, field.width)) return nullptr;
    store_field(records[i], field, value);
    previous = value;
  }
  return at;
}

// Decodes a section of a known kind into records[0 … section.count); `records` has room for kMaxSectionRecords.
// Enumerations are as in the file: a value this version does not know is possible. False: malformed, use nothing.
inline bool decode_records(const Section& section, Record* records) {
  const FieldList list = fields_of(section.kind);
  const std::uint8_t* at = section.body.data;
  const std::uint8_t* const end = at + section.body.size;
  for (std::size_t i = 0; i < section.count; ++i) clear(&records[i], static_cast<RecordKind>(section.kind));
  for (std::size_t f = 0; f < list.count && at != end; ++f) {  // columns that an older writer did not have stay 0
    const Field* before = f > 0 ? &list.fields[f - 1] : nullptr;
    at = get_column(at, end, list.fields[f], before, records, section.count);
    if (at == nullptr) return false;
  }
  return list.count != 0;
}

}  // namespace llmprof::wire
