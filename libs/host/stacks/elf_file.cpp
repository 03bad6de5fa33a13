#include "host/stacks/elf_file.h"

#include <elf.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "host/stacks/byte_reader.h"

namespace llmprof::host {
namespace {

constexpr std::uint64_t kPageBytes = 4096;
constexpr std::uint64_t kMaxSymbolBytes = 512u << 20;  // of one symbol table: 22 million symbols
constexpr std::uint64_t kMaxNoteBytes = 4096;

bool is_ours(const Elf64_Ehdr& header) {
  return std::memcmp(header.e_ident, ELFMAG, SELFMAG) == 0 && header.e_ident[EI_CLASS] == ELFCLASS64 &&
         header.e_ident[EI_DATA] == ELFDATA2LSB && header.e_machine == EM_X86_64 &&
         header.e_phentsize == sizeof(Elf64_Phdr);
}

}  // namespace

std::optional<ElfFile> ElfFile::parse(std::unique_ptr<ByteSource> source) {
  Elf64_Ehdr header{};
  if (source == nullptr || !source->read(0, &header, sizeof header) || !is_ours(header)) return std::nullopt;
  ElfFile file(std::move(source));
  file.entry_ = header.e_entry;
  if (!file.read_segments(header.e_phoff, header.e_phnum)) return std::nullopt;
  if (header.e_shentsize == sizeof(Elf64_Shdr)) file.read_sections(header.e_shoff, header.e_shnum);
  return file;
}

bool ElfFile::read_segments(std::uint64_t offset, std::uint16_t count) {
  std::vector<Elf64_Phdr> headers(count);
  if (!source_->read(offset, headers.data(), headers.size() * sizeof(Elf64_Phdr))) return false;
  for (const Elf64_Phdr& header : headers) {
    if (header.p_type == PT_LOAD) {
      segments_.push_back({header.p_vaddr, header.p_offset, header.p_filesz, (header.p_flags & PF_X) != 0});
    } else if (header.p_type == PT_GNU_EH_FRAME) {
      unwind_table_address_ = header.p_vaddr;
      unwind_table_bytes_ = header.p_filesz;
    } else if (header.p_type == PT_NOTE && header.p_filesz > 0 && header.p_filesz <= kMaxNoteBytes) {
      // There may be several; the one with the build id comes last or alone in practice, and build_id() looks inside.
      if (notes_bytes_ != 0 && !build_id().empty()) continue;
      notes_offset_ = header.p_offset;
      notes_bytes_ = header.p_filesz;
    }
  }
  return !segments_.empty();
}

void ElfFile::read_sections(std::uint64_t offset, std::uint16_t count) {
  std::vector<Elf64_Shdr> headers(count);
  if (!source_->read(offset, headers.data(), headers.size() * sizeof(Elf64_Shdr))) return;
  for (const Elf64_Shdr& header : headers) {
    if (header.sh_type != SHT_SYMTAB && header.sh_type != SHT_DYNSYM) continue;
    if (header.sh_link >= headers.size() || header.sh_size > kMaxSymbolBytes) continue;
    const Elf64_Shdr& text = headers[header.sh_link];
    SymbolSection& target = header.sh_type == SHT_SYMTAB ? full_symbols_ : dynamic_symbols_;
    target = {header.sh_offset, header.sh_size, text.sh_offset, text.sh_size};
  }
}

bool ElfFile::read_address(std::uint64_t address, void* out, std::size_t bytes) const {
  for (const Segment& segment : segments_) {
    const std::uint64_t inside = address - segment.address;
    if (address < segment.address || inside > segment.file_bytes || bytes > segment.file_bytes - inside) continue;
    return source_->read(segment.offset + inside, out, bytes);
  }
  return false;
}

std::optional<std::uint64_t> ElfFile::address_of_offset(std::uint64_t offset) const {
  std::optional<std::uint64_t> found;
  for (const Segment& segment : segments_) {
    const std::uint64_t first = segment.offset & ~(kPageBytes - 1);  // mappings begin at a page
    if (offset < first || offset - first >= segment.file_bytes + kPageBytes) continue;
    if (found && !segment.executable) continue;
    if (segment.executable || !found) found = offset - segment.offset + segment.address;
    if (segment.executable && offset >= segment.offset && offset - segment.offset < segment.file_bytes) break;
  }
  return found;
}

std::vector<ElfSymbol> ElfFile::symbols() const {
  const SymbolSection& section = has_full_symbols() ? full_symbols_ : dynamic_symbols_;
  std::vector<ElfSymbol> symbols;
  if (section.bytes > source_->size()) return symbols;
  std::vector<Elf64_Sym> entries(section.bytes / sizeof(Elf64_Sym));
  if (!source_->read(section.offset, entries.data(), entries.size() * sizeof(Elf64_Sym))) return symbols;
  for (const Elf64_Sym& entry : entries) {
    const auto type = ELF64_ST_TYPE(entry.st_info);
    const bool function = type == STT_FUNC || type == STT_GNU_IFUNC;
    const bool named_place = type == STT_NOTYPE || type == STT_OBJECT;
    if (entry.st_shndx == SHN_UNDEF || entry.st_value == 0 || (!function && !named_place)) continue;
    if (entry.st_name == 0 || entry.st_name >= section.text_bytes) continue;
    const bool local = ELF64_ST_BIND(entry.st_info) == STB_LOCAL;
    symbols.push_back({entry.st_value, entry.st_size, section.text_offset + entry.st_name, function, local});
  }
  return symbols;
}

std::string ElfFile::text_at(std::uint64_t offset, std::size_t most) const {
  std::string text;
  if (offset >= source_->size()) return text;
  for (std::size_t wanted = 64; text.size() < most; wanted = most) {
    text.resize(std::min<std::uint64_t>(wanted, source_->size() - offset));
    if (!source_->read(offset, text.data(), text.size())) return "";
    if (const auto end = text.find('\0'); end != std::string::npos) return text.substr(0, end);
    if (text.size() < wanted || wanted == most) break;
  }
  return text;
}

std::string ElfFile::build_id() const {
  std::vector<std::uint8_t> bytes(notes_bytes_);
  if (bytes.empty() || !source_->read(notes_offset_, bytes.data(), bytes.size())) return "";
  ByteReader reader(bytes);
  while (reader.ok() && reader.left() >= sizeof(Elf64_Nhdr)) {
    const auto note = reader.fixed<Elf64_Nhdr>();
    const auto name = reader.block((std::uint64_t{note.n_namesz} + 3) & ~std::uint64_t{3});
    const auto value = reader.block((std::uint64_t{note.n_descsz} + 3) & ~std::uint64_t{3});
    const bool gnu = note.n_namesz == 4 && name.size() == 4 && std::memcmp(name.data(), "GNU", 4) == 0;
    if (!gnu || note.n_type != NT_GNU_BUILD_ID || value.size() < note.n_descsz) continue;
    std::string text;
    for (std::uint32_t i = 0; i < note.n_descsz; ++i) text += fmt::format("{:02x}", value[i]);
    return text;
  }
  return "";
}

}  // namespace llmprof::host
