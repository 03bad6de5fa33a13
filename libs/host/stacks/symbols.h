#pragma once
// The functions of one ELF file by address. Read at the first question; names only when asked for.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "host/stacks/elf_file.h"

namespace llmprof::host {

class Symbols {
 public:
  struct Place {
    std::uint64_t begin = 0;
    std::string name;  // as in the file, without its version
  };

  // From the file, or from its separate debug file below /usr/lib/debug where it has been stripped.
  explicit Symbols(const ElfFile& file);

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
