#include "host/stacks/elf.h"

#include <fmt/format.h>

#include <elf.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "wire/byte_reader.h"

namespace llmprof::host {

namespace {

class FileBytes final : public ByteSource {
 public:
  FileBytes(int descriptor, std::uint64_t size) : descriptor_(descriptor), size_(size) {}
  FileBytes(const FileBytes&) = delete;
  FileBytes& operator=(const FileBytes&) = delete;
  ~FileBytes() override { ::close(descriptor_); }

  bool read(std::uint64_t offset, void* out, std::size_t bytes) const override {
    if (offset > size_ || bytes > size_ - offset) return false;
    char* at = static_cast<char*>(out);
    while (bytes > 0) {
      const ssize_t got = ::pread(descriptor_, at, bytes, static_cast<off_t>(offset));
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) return false;
      at += got;
      offset += static_cast<std::uint64_t>(got);
      bytes -= static_cast<std::size_t>(got);
    }
    return true;
  }
  std::uint64_t size() const override { return size_; }

 private:
  int descriptor_;
  std::uint64_t size_;
};

class MemoryBytes final : public ByteSource {
 public:
  explicit MemoryBytes(std::vector<std::uint8_t> bytes) : bytes_(std::move(bytes)) {}
  bool read(std::uint64_t offset, void* out, std::size_t bytes) const override {
    if (offset > bytes_.size() || bytes > bytes_.size() - offset) return false;
    if (bytes > 0) std::memcpy(out, bytes_.data() + offset, bytes);
    return true;
  }
  std::uint64_t size() const override { return bytes_.size(); }

 private:
  std::vector<std::uint8_t> bytes_;
};

}  // namespace

std::unique_ptr<ByteSource> open_file(const std::string& path, std::uint64_t inode) {
  // Not blocking: the path comes from outside and could be a pipe.
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (descriptor < 0) return nullptr;
  struct stat status {};
  const bool good = ::fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode) && status.st_size > 0 &&
                    (inode == 0 || status.st_ino == inode);
  if (!good) {
    ::close(descriptor);
    return nullptr;
  }
  return std::make_unique<FileBytes>(descriptor, static_cast<std::uint64_t>(status.st_size));
}

std::unique_ptr<ByteSource> from_memory(std::vector<std::uint8_t> bytes) {
  return std::make_unique<MemoryBytes>(std::move(bytes));
}

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
  if (header.e_shentsize == sizeof(Elf64_Shdr)) file.read_sections(header.e_shoff, header.e_shnum, header.e_shstrndx);
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

void ElfFile::read_sections(std::uint64_t offset, std::uint16_t count, std::uint16_t names) {
  std::vector<Elf64_Shdr> headers(count);
  if (!source_->read(offset, headers.data(), headers.size() * sizeof(Elf64_Shdr))) return;
  for (const Elf64_Shdr& header : headers) {
    if (header.sh_type == SHT_NOTE && header.sh_size <= kMaxNoteBytes && header.sh_size > 0 && build_id().empty()) {
      notes_offset_ = header.sh_offset;  // a separate debug file has its notes in sections only
      notes_bytes_ = header.sh_size;
    }
    if (header.sh_type == SHT_PROGBITS && names < headers.size() && header.sh_size <= kMaxNoteBytes &&
        text_at(headers[names].sh_offset + header.sh_name, 32) == ".gnu_debuglink") {
      read_debug_link(header.sh_offset, header.sh_size);
    }
    if (header.sh_type != SHT_SYMTAB && header.sh_type != SHT_DYNSYM) continue;
    if (header.sh_link >= headers.size() || header.sh_size > kMaxSymbolBytes) continue;
    const Elf64_Shdr& text = headers[header.sh_link];
    SymbolSection& target = header.sh_type == SHT_SYMTAB ? full_symbols_ : dynamic_symbols_;
    target = {header.sh_offset, header.sh_size, text.sh_offset, text.sh_size};
  }
}

// The name, zeros up to a multiple of 4, the checksum.
void ElfFile::read_debug_link(std::uint64_t offset, std::uint64_t bytes) {
  if (bytes < 8 || !source_->read(offset + bytes - 4, &debug_link_.crc, sizeof debug_link_.crc)) return;
  const std::string name = text_at(offset, bytes - 4);
  if (name.find('/') == std::string::npos) debug_link_.name = name;  // it names a file, not a way to one
}

bool ElfFile::has_crc(std::uint32_t crc) const {
  constexpr std::uint64_t kMostBytes = 256u << 20;  // half a second of work
  if (source_->size() > kMostBytes) return false;
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t i = 0; i < 256; ++i) {
    table[i] = i;
    for (int bit = 0; bit < 8; ++bit) table[i] = table[i] >> 1 ^ (table[i] & 1 ? 0xedb88320u : 0);
  }
  std::vector<std::uint8_t> buffer(1 << 16);
  std::uint32_t value = ~0u;
  for (std::uint64_t at = 0; at < source_->size(); at += buffer.size()) {
    buffer.resize(std::min<std::uint64_t>(buffer.size(), source_->size() - at));
    if (!source_->read(at, buffer.data(), buffer.size())) return false;
    for (const std::uint8_t byte : buffer) value = table[(value ^ byte) & 0xff] ^ value >> 8;
  }
  return ~value == crc;
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
  wire::ByteReader reader(bytes);
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

namespace {

constexpr std::size_t kMaxNameBytes = 4096;

// Where the debug file of a program or library may lie, as gdb looks for it.
std::vector<std::string> debug_paths(const ElfFile& file, const std::string& path) {
  std::vector<std::string> paths;
  if (const std::string id = file.build_id(); id.size() >= 4)
    paths.push_back("/usr/lib/debug/.build-id/" + id.substr(0, 2) + "/" + id.substr(2) + ".debug");
  const std::string& name = file.debug_link().name;
  if (name.empty() || !path.starts_with('/')) return paths;
  const std::string folder = path.substr(0, path.rfind('/') + 1);
  for (const std::string& in : {folder, folder + ".debug/", "/usr/lib/debug" + folder}) {
    if (in + name != path) paths.push_back(in + name);
  }
  return paths;
}

// A file of that name may be of another version: the build id tells, or the checksum of the link.
bool belongs_to(const ElfFile& debug, const ElfFile& file) {
  if (!debug.has_full_symbols()) return false;
  const std::string id = file.build_id();
  return id.empty() ? debug.has_crc(file.debug_link().crc) : debug.build_id() == id;
}

std::optional<ElfFile> open_debug_file(const ElfFile& file, const std::string& path,
                                       const std::vector<std::string>& roots) {
  for (const std::string& root : roots) {
    for (const std::string& place : debug_paths(file, path)) {
      auto debug = ElfFile::parse(open_file(root + place, 0));
      if (debug && belongs_to(*debug, file)) return debug;
    }
  }
  return std::nullopt;
}

}  // namespace

Symbols::Symbols(const ElfFile& file, const std::string& path, const std::vector<std::string>& roots) : file_(file) {
  if (!file.has_full_symbols()) debug_file_ = open_debug_file(file, path, roots);
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
