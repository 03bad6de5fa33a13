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
  std::sort(functions_.begin(), functions_.end(),
            [](const ElfSymbol& a, const ElfSymbol& b) { return a.begin < b.begin; });
}

std::string Symbols::name_of(const ElfSymbol& symbol) const {
  return (debug_file_ ? *debug_file_ : file_).text_at(symbol.name_offset, kMaxNameBytes);
}

// Of several names of one place: the one that others use, then the one with the fewest underscores before it.
bool Symbols::better(const ElfSymbol& a, const ElfSymbol& b) const {
  if (a.local != b.local) return b.local;
  return name_of(a).find_first_not_of('_') < name_of(b).find_first_not_of('_');
}

std::optional<Symbols::Place> Symbols::containing(std::uint64_t address) const {
  constexpr int kLookBack = 16;  // over aliases and functions that end before
  auto at = std::upper_bound(functions_.begin(), functions_.end(), address,
                             [](std::uint64_t wanted, const ElfSymbol& symbol) { return wanted < symbol.begin; });
  const std::uint64_t next = at == functions_.end() ? ~std::uint64_t{0} : at->begin;
  const ElfSymbol* found = nullptr;
  for (int i = 0; i < kLookBack && at != functions_.begin(); ++i) {
    --at;
    if (found != nullptr && at->begin != found->begin) break;
    const bool covers = at->bytes > 0 ? address - at->begin < at->bytes : address < next;
    if (covers && (found == nullptr || better(*at, *found))) found = &*at;
  }
  if (found == nullptr) return std::nullopt;
  std::string name = name_of(*found);
  name.resize(std::min(name.size(), name.find('@')));  // symbol versions
  return Place{found->begin, std::move(name)};
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
