#include "host/stacks/address_space.h"

#include <elf.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <fstream>
#include <iterator>
#include <optional>
#include <string_view>
#include <vector>

#include "host/stacks/remote_memory.h"

namespace llmprof::host {
namespace {

constexpr std::size_t kMaxModules = 4096, kMaxMappings = 65536;
constexpr std::uint64_t kMaxImageBytes = 64u << 20;
constexpr std::uint64_t kReadAgainNs = 100'000'000;

// The file of a library that was deleted or never had one (the vdso), put together from the process's memory.
std::unique_ptr<ByteSource> image_from_memory(pid_t pid, const Mapping& mapping) {
  const std::uint64_t base = mapping.begin - mapping.file_offset;  // true where the file is mapped in one piece
  Elf64_Ehdr header{};
  if (!RemoteMemory::read_directly(pid, base, &header, sizeof header)) return nullptr;
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_phentsize != sizeof(Elf64_Phdr)) return nullptr;
  std::vector<Elf64_Phdr> segments(std::min<std::size_t>(header.e_phnum, 64));
  if (!RemoteMemory::read_directly(pid, base + header.e_phoff, segments.data(), segments.size() * sizeof(Elf64_Phdr)))
    return nullptr;
  std::vector<std::uint8_t> image;
  for (const Elf64_Phdr& segment : segments) {
    if (segment.p_type != PT_LOAD) continue;
    const std::uint64_t end = segment.p_offset + segment.p_filesz;
    if (end < segment.p_offset || end > kMaxImageBytes) return nullptr;
    if (image.size() < end) image.resize(end);
    // A part that cannot be read stays 0; its absence shows as missing unwind rows.
    RemoteMemory::read_directly(pid, base + segment.p_vaddr, image.data() + segment.p_offset, segment.p_filesz);
  }
  if (mapping.path == "[vdso]") {  // all of it is in memory, section headers too
    image.resize(mapping.end - mapping.begin);
    RemoteMemory::read_directly(pid, base, image.data(), image.size());
  } else if (image.size() >= sizeof header) {
    header.e_shnum = 0;  // section headers are not loaded
    std::memcpy(image.data(), &header, sizeof header);
  }
  return from_memory(std::move(image));
}

std::unique_ptr<ByteSource> bytes_of(pid_t pid, const Mapping& mapping) {
  if (mapping.path.starts_with('/')) {
    auto file = open_file(fmt::format("/proc/{}/root{}", pid, mapping.path), mapping.inode);
    if (file == nullptr) file = open_file(mapping.path, mapping.inode);  // the process is gone
    if (file != nullptr) return file;
  }
  return image_from_memory(pid, mapping);
}

std::uint64_t number(std::string_view text, int base) {
  std::uint64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value, base);
  return value;
}

// "55d0…-55d1… r-xp 00002000 fe:00 1234    /usr/bin/x"
bool parse_maps_line(std::string_view line, Mapping& mapping) {
  std::array<std::string_view, 5> fields;
  for (std::string_view& field : fields) {
    field = line.substr(0, line.find(' '));
    line.remove_prefix(std::min(line.size(), field.size() + 1));
  }
  const std::size_t dash = fields[0].find('-');
  if (dash == std::string_view::npos || fields[1].size() < 3 || fields[1][2] != 'x') return false;
  mapping.begin = number(fields[0].substr(0, dash), 16);
  mapping.end = number(fields[0].substr(dash + 1), 16);
  mapping.file_offset = number(fields[2], 16);
  mapping.inode = number(fields[4], 10);
  line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
  mapping.path = line;
  constexpr std::string_view kDeleted = " (deleted)";
  if (mapping.path.ends_with(kDeleted)) mapping.path.resize(mapping.path.size() - kDeleted.size());
  return mapping.begin < mapping.end;
}

}  // namespace

std::shared_ptr<Module> ModuleCache::get(pid_t pid, const Mapping& mapping) {
  if (mapping.path.empty() || mapping.path == "[vsyscall]") return nullptr;
  const auto key = std::make_pair(mapping.inode, mapping.path);
  const auto known = modules_.find(key);
  if (known != modules_.end()) return known->second;
  if (modules_.size() >= kMaxModules) return nullptr;  // never let go: frames are known by their functions' addresses
  std::optional<ElfFile> file = ElfFile::parse(bytes_of(pid, mapping));
  if (!file) return nullptr;  // asked again by the next process: this one may have ended too early
  return modules_[key] = std::make_shared<Module>(mapping.path, std::move(*file), fmt::format("/proc/{}/root", pid));
}

void AddressSpace::add(const Mapping& mapping) {
  if (mapping.begin >= mapping.end) return;
  if (mappings_.size() >= kMaxMappings) mappings_.clear();
  // What was there before is gone, as far as it is covered.
  auto at = mappings_.lower_bound(mapping.begin);
  if (at != mappings_.begin()) {
    auto before = std::prev(at);
    const Entry outer = before->second;
    if (outer.mapping.end > mapping.begin) {
      before->second.mapping.end = mapping.begin;
      if (outer.mapping.end > mapping.end) {
        Entry rest = outer;
        rest.mapping.begin = mapping.end;
        rest.mapping.file_offset += mapping.end - outer.mapping.begin;
        mappings_[mapping.end] = rest;
      }
    }
  }
  while (at != mappings_.end() && at->first < mapping.end) {
    if (at->second.mapping.end > mapping.end) {
      Entry rest = at->second;
      rest.mapping.file_offset += mapping.end - rest.mapping.begin;
      rest.mapping.begin = mapping.end;
      mappings_[mapping.end] = rest;
    }
    at = mappings_.erase(at);
  }
  mappings_[mapping.begin] = Entry{.mapping = mapping};
}

void AddressSpace::read_proc() {
  std::ifstream maps(fmt::format("/proc/{}/maps", pid_));
  for (std::string line; std::getline(maps, line);) {
    Mapping mapping;
    if (!parse_maps_line(line, mapping)) continue;
    const Entry* known = entry_of(mapping.begin);
    const bool same = known != nullptr && known->mapping.begin == mapping.begin && known->mapping.end == mapping.end &&
                      known->mapping.inode == mapping.inode && known->mapping.path == mapping.path;
    if (!same) add(mapping);
  }
}

AddressSpace::Entry* AddressSpace::entry_of(std::uint64_t address) {
  auto at = mappings_.upper_bound(address);
  if (at == mappings_.begin()) return nullptr;
  --at;
  return address < at->second.mapping.end ? &at->second : nullptr;
}

void AddressSpace::load(Entry& entry) {
  if (entry.looked) return;
  entry.looked = true;
  entry.module = modules_->get(pid_, entry.mapping);
  if (entry.module == nullptr) return;
  const auto address = entry.module->file().address_of_offset(entry.mapping.file_offset);
  if (address) {
    entry.bias = entry.mapping.begin - *address;
  } else {
    entry.module = nullptr;
  }
}

bool AddressSpace::find(std::uint64_t address, std::uint64_t now_ns, Place& place) {
  Entry* entry = entry_of(address);
  if (entry == nullptr && (proc_read_ns_ == 0 || now_ns - proc_read_ns_ > kReadAgainNs)) {
    proc_read_ns_ = now_ns;
    read_proc();
    entry = entry_of(address);
  }
  if (entry == nullptr) return false;
  load(*entry);
  place = {entry->module.get(), address - entry->bias, entry->bias};
  return true;
}

bool AddressSpace::find_symbol(std::string_view name, Place& place) {
  for (auto& [begin, entry] : mappings_) {
    load(entry);
    if (entry.module == nullptr) continue;
    const auto address = entry.module->symbol(name);
    if (!address) continue;
    place = {entry.module.get(), *address, entry.bias};
    return true;
  }
  return false;
}

}  // namespace llmprof::host
