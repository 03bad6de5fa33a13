#pragma once
// ELF files as stacks need them: their bytes, their segments and sections, their symbols by address.

#include <sys/types.h>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace llmprof::host {

// Where the bytes of an executable come from: its file, or the memory of the process that runs it. Files are read, not
// mapped: a file that shrinks while we look at it would otherwise kill us.
class ByteSource {
 public:
  virtual ~ByteSource() = default;
  // All of them or false.
  virtual bool read(std::uint64_t offset, void* out, std::size_t bytes) const = 0;
  virtual std::uint64_t size() const = 0;
};

// A regular file; `inode` 0 accepts any. nullptr if it is not there or is another file.
std::unique_ptr<ByteSource> open_file(const std::string& path, std::uint64_t inode);
std::unique_ptr<ByteSource> from_memory(std::vector<std::uint8_t> bytes);

// What stacks need of an ELF file: where its segments lie, its unwind table, its symbols, its build id. Files are
// foreign input: everything read from them is checked.
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
  // Where its symbols went when it was stripped: the name of a file, and that file's CRC-32.
  struct DebugLink {
    std::string name;  // "" none
    std::uint32_t crc = 0;
  };
  const DebugLink& debug_link() const { return debug_link_; }
  bool has_crc(std::uint32_t crc) const;  // of all its bytes; false if there are too many

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
  void read_sections(std::uint64_t offset, std::uint16_t count, std::uint16_t names);
  void read_debug_link(std::uint64_t offset, std::uint64_t bytes);

  std::unique_ptr<ByteSource> source_;
  std::vector<Segment> segments_;
  std::uint64_t entry_ = 0;
  std::uint64_t unwind_table_address_ = 0, unwind_table_bytes_ = 0;
  std::uint64_t notes_offset_ = 0, notes_bytes_ = 0;
  SymbolSection full_symbols_, dynamic_symbols_;
  DebugLink debug_link_;
};

// The functions of one ELF file by address. Read at the first question; names only when asked for.
class Symbols {
 public:
  struct Place {
    std::uint64_t begin = 0;
    std::string name;  // as in the file, without its version
  };

  // From the file, or from its separate debug file where it has been stripped: by build id below /usr/lib/debug, or by
  // its .gnu_debuglink beside `path`. `roots`: folders that stand for /, "" is our own; the first that has it counts.
  explicit Symbols(const ElfFile& file, const std::string& path = "", const std::vector<std::string>& roots = {""});

  std::optional<Place> containing(std::uint64_t address) const;
  // Address of a symbol.
  std::optional<std::uint64_t> address_of(std::string_view name) const;

 private:
  std::string name_of(const ElfSymbol& symbol) const;
  bool better(const ElfSymbol& a, const ElfSymbol& b) const;
  const ElfFile& file_;
  std::optional<ElfFile> debug_file_;
  std::vector<ElfSymbol> functions_;  // by address
  std::vector<ElfSymbol> objects_;
};

}  // namespace llmprof::host
