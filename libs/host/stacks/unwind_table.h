#pragma once
// The unwind rows of one ELF file, found through the sorted index that linkers add (.eh_frame_hdr). Entries are read
// and worked out when an address is first asked for.

#include <cstdint>
#include <optional>

#include "host/stacks/elf_file.h"
#include "host/stacks/unwind_row.h"

namespace llmprof::host {

class UnwindTable {
 public:
  explicit UnwindTable(const ElfFile& file);

  bool empty() const { return entries_ == 0; }
  // `address` as in the file.
  std::optional<UnwindRow> row(const ElfFile& file, std::uint64_t address) const;

 private:
  std::uint64_t base_ = 0;   // of the index; its offsets are relative to it
  std::uint64_t table_ = 0;  // address of the first pair (function, FDE)
  std::uint64_t entries_ = 0;
};

}  // namespace llmprof::host
