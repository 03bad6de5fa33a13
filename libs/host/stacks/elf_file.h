#pragma once
// What stacks need of an ELF file: where its segments lie, its unwind table, its symbols, its build id. Files are
// foreign input: everything read from them is checked.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "host/stacks/byte_source.h"

namespace llmprof::host {

struct ElfSymbol {
  std::uint64_t begin = 0, bytes = 0;  // virtual address
  std::uint64_t name_offset = 0;       // of the name, in the file
  bool function = false;
  bool local = false;  // seen inside its file only
};

class ElfFile {
 public:
  // Little-endian 64-bit x86-64 only.
  static std::optional<ElfFile> parse(std::unique_ptr<ByteSource> source);

  // Bytes at a virtual address, as the file has them.
  bool read_address(std::uint64_t address, void* out, std::size_t bytes) const;
  // Virtual address of a place in the file, preferring executable segments.
  std::optional<std::uint64_t> address_of_offset(std::uint64_t offset) const;

  std::uint64_t entry() const { return entry_; }  // where the program or the loader begins
  std::uint64_t unwind_table_address() const { return unwind_table_address_; }  // .eh_frame_hdr; 0: none
  std::uint64_t unwind_table_bytes() const { return unwind_table_bytes_; }

  // Of .symtab, or .dynsym where there is no .symtab. In no order.
  std::vector<ElfSymbol> symbols() const;
  bool has_full_symbols() const { return full_symbols_.bytes > 0; }
  std::string text_at(std::uint64_t offset, std::size_t most) const;  // up to its 0
  std::string build_id() const;                                       // hexadecimal; "" if it has none

 private:
  struct Segment {
    std::uint64_t address, offset, file_bytes;
    bool executable;
  };
  struct SymbolSection {
    std::uint64_t offset = 0, bytes = 0;
    std::uint64_t text_offset = 0, text_bytes = 0;
  };
  explicit ElfFile(std::unique_ptr<ByteSource> source) : source_(std::move(source)) {}
  bool read_segments(std::uint64_t offset, std::uint16_t count);
  void read_sections(std::uint64_t offset, std::uint16_t count);

  std::unique_ptr<ByteSource> source_;
  std::vector<Segment> segments_;
  std::uint64_t entry_ = 0;
  std::uint64_t unwind_table_address_ = 0, unwind_table_bytes_ = 0;
  std::uint64_t notes_offset_ = 0, notes_bytes_ = 0;
  SymbolSection full_symbols_, dynamic_symbols_;
};

}  // namespace llmprof::host
