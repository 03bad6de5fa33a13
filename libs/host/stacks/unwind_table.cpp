#include "host/stacks/unwind_table.h"

#include <vector>

#include "host/stacks/byte_reader.h"

namespace llmprof::host {
namespace {

constexpr std::uint32_t kMaxEntryBytes = 64 << 10;

struct IndexPair {
  std::int32_t function, fde;
};

struct OwnedEntry {
  std::uint64_t address = 0;
  std::vector<std::uint8_t> bytes;
  FrameEntry view() const { return {address, bytes}; }
};

std::optional<OwnedEntry> read_entry(const ElfFile& file, std::uint64_t address) {
  std::uint32_t bytes = 0;
  if (!file.read_address(address, &bytes, sizeof bytes)) return std::nullopt;
  if (bytes < sizeof(std::uint32_t) || bytes > kMaxEntryBytes) return std::nullopt;
  OwnedEntry entry{address + sizeof bytes, std::vector<std::uint8_t>(bytes)};
  if (!file.read_address(entry.address, entry.bytes.data(), bytes)) return std::nullopt;
  return entry;
}

}  // namespace

// Only the form that all linkers write: a 4-byte count, then pairs of 4-byte offsets from the index's begin.
UnwindTable::UnwindTable(const ElfFile& file) {
  constexpr std::uint8_t kVersion = 1, kOffset4 = 0x1b, kCount4 = 0x03, kPairs = 0x3b;
  struct {
    std::uint8_t version, frame_encoding, count_encoding, table_encoding;
    std::int32_t frame;
    std::uint32_t count;
  } header{};
  if (file.unwind_table_bytes() < sizeof header) return;
  if (!file.read_address(file.unwind_table_address(), &header, sizeof header)) return;
  if (header.version != kVersion || header.frame_encoding != kOffset4 || header.count_encoding != kCount4 ||
      header.table_encoding != kPairs)
    return;
  if (header.count > (file.unwind_table_bytes() - sizeof header) / sizeof(IndexPair)) return;
  base_ = file.unwind_table_address();
  table_ = base_ + sizeof header;
  entries_ = header.count;
}

std::optional<UnwindRow> UnwindTable::row(const ElfFile& file, std::uint64_t address) const {
  const auto wanted = static_cast<std::int64_t>(address - base_);
  std::uint64_t low = 0, high = entries_;  // the last pair whose function is not above is in [low, high)
  IndexPair pair{};
  bool found = false;
  while (low < high) {
    const std::uint64_t middle = low + (high - low) / 2;
    IndexPair candidate{};
    if (!file.read_address(table_ + middle * sizeof candidate, &candidate, sizeof candidate)) return std::nullopt;
    if (candidate.function <= wanted) {
      pair = candidate;
      found = true;
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  if (!found) return std::nullopt;
  const auto fde = read_entry(file, base_ + static_cast<std::uint64_t>(std::int64_t{pair.fde}));
  if (!fde) return std::nullopt;
  const std::uint32_t back = ByteReader(fde->bytes).fixed<std::uint32_t>();  // from this field to the CIE
  if (back == 0) return std::nullopt;
  const auto cie = read_entry(file, fde->address - back);
  if (!cie) return std::nullopt;
  return unwind_row(cie->view(), fde->view(), address);
}

}  // namespace llmprof::host
