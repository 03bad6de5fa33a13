#include "host/stacks/symbols.h"

#include <algorithm>

namespace llmprof::host {
namespace {

constexpr std::size_t kMaxNameBytes = 4096;

std::optional<ElfFile> open_debug_file(const ElfFile& file) {
  const std::string id = file.build_id();
  if (id.size() < 4) return std::nullopt;
  return ElfFile::parse(open_file("/usr/lib/debug/.build-id/" + id.substr(0, 2) + "/" + id.substr(2) + ".debug", 0));
}

}  // namespace

Symbols::Symbols(const ElfFile& file) : file_(file) {
  if (!file.has_full_symbols()) debug_file_ = open_debug_file(file);
  if (debug_file_ && !debug_file_->has_full_symbols()) debug_file_.reset();
  for (const ElfSymbol& symbol : (debug_file_ ? *debug_file_ : file).symbols())
    (symbol.function ? functions_ : objects_).push_back(symbol);
  // Of several names of one place, the first in the file.
  std::stable_sort(functions_.begin(), functions_.end(),
                   [](const ElfSymbol& a, const ElfSymbol& b) { return a.begin < b.begin; });
}

std::string Symbols::name_of(const ElfSymbol& symbol) const {
  return (debug_file_ ? *debug_file_ : file_).text_at(symbol.name_offset, kMaxNameBytes);
}

std::optional<Symbols::Place> Symbols::containing(std::uint64_t address) const {
  constexpr int kLookBack = 8;  // over aliases and functions that end before
  auto at = std::upper_bound(functions_.begin(), functions_.end(), address,
                             [](std::uint64_t wanted, const ElfSymbol& symbol) { return wanted < symbol.begin; });
  const std::uint64_t next = at == functions_.end() ? ~std::uint64_t{0} : at->begin;
  std::optional<Place> found;
  for (int i = 0; i < kLookBack && at != functions_.begin(); ++i) {
    --at;
    if (found && at->begin != found->begin) break;
    const std::uint64_t end = at->bytes > 0 ? at->begin + at->bytes : next;
    if (address < end) found = Place{at->begin, end, name_of(*at)};
  }
  return found;
}

std::optional<std::uint64_t> Symbols::address_of(std::string_view name) const {
  for (const auto* list : {&objects_, &functions_}) {
    for (const ElfSymbol& symbol : *list) {
      if (name_of(symbol) == name) return symbol.begin;
    }
  }
  return std::nullopt;
}

}  // namespace llmprof::host
