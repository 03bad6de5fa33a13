#include "collect/cuda/counters/stall_sources.h"

#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "collect/futex.h"
#include "collect/lifecycle.h"
#include "collect/names.h"

namespace llmprof::collect::counters {
namespace {

bool lies_within(std::uint64_t offset, std::uint64_t size, std::size_t bytes) {
  return offset <= bytes && size <= bytes - offset;
}

// A copy: nothing says that the bytes are aligned.
bool read_section(const char* cubin, std::size_t bytes, const Elf64_Ehdr& header, std::size_t index, Elf64_Shdr* out) {
  const std::uint64_t offset = header.e_shoff + index * sizeof(Elf64_Shdr);
  if (header.e_shoff > bytes || !lies_within(offset, sizeof(*out), bytes)) return false;
  memcpy(out, cubin + offset, sizeof(*out));
  return true;
}

std::uint64_t slot_of(const StallKey& place) {
  std::uint64_t hash = place.cubin ^ place.pc_offset * 0x9e3779b97f4a7c15u ^ std::uint64_t{place.function} << 40;
  hash ^= hash >> 29;
  return hash * 0x9e3779b97f4a7c15u >> 32;
}

wire::StringId join(const char* folder, const char* file) {
  char path[1024];
  if (folder == nullptr || *folder == '\0' || *file == '/') return intern(file);
  snprintf(path, sizeof(path), "%s/%s", folder, file);
  return intern(path);
}

}  // namespace

bool has_lines(const char* cubin, std::size_t bytes) {
  Elf64_Ehdr header;
  Elf64_Shdr names, section;
  if (cubin == nullptr || bytes < sizeof(header)) return false;
  memcpy(&header, cubin, sizeof(header));
  if (memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64) return false;
  if (header.e_shentsize != sizeof(Elf64_Shdr)) return false;
  if (!read_section(cubin, bytes, header, header.e_shstrndx, &names)) return false;
  if (!lies_within(names.sh_offset, names.sh_size, bytes)) return false;
  constexpr char kLines[] = ".debug_line";
  for (std::size_t i = 0; i < header.e_shnum && read_section(cubin, bytes, header, i, &section); ++i) {
    if (!lies_within(section.sh_name, sizeof(kLines), names.sh_size)) continue;
    if (memcmp(cubin + names.sh_offset + section.sh_name, kLines, sizeof(kLines)) == 0) return true;
  }
  return false;
}

void StallSources::keep(const pc::Module& code) {
  if (!has_lines(code.cubin, code.bytes)) return;
  const KeepErrno keep;
  if (reserved_bytes_.fetch_add(code.bytes, std::memory_order_relaxed) + code.bytes > kMostBytes) {
    reserved_bytes_.fetch_sub(code.bytes, std::memory_order_relaxed);
    return;
  }
  const std::size_t index = reserved_.fetch_add(1, std::memory_order_relaxed);
  if (index >= kMostModules) return;
  void* memory = mmap(nullptr, code.bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return;
  memcpy(memory, code.cubin, code.bytes);
  modules_[index].bytes = code.bytes;
  modules_[index].cubin.store(static_cast<const char*>(memory), std::memory_order_release);
}

const StallSources::Module* StallSources::find(std::uint64_t checksum) {
  const std::size_t reserved = reserved_.load(std::memory_order_relaxed);
  for (std::size_t i = 0; i < reserved && i < kMostModules; ++i) {
    Module& code = modules_[i];
    const char* const cubin = code.cubin.load(std::memory_order_acquire);
    if (cubin == nullptr) continue;
    if (!code.has_checksum) {
      pc::ChecksumParams params = {sizeof(params), code.bytes, cubin, 0};
      code.has_checksum = true;
      if (library_->checksum(&params) == 0) code.checksum = params.checksum;
    }
    if (code.checksum == checksum) return &code;
  }
  return nullptr;
}

Source StallSources::ask(const Module& code, const StallKey& place) {
  const Shared* shared = shared_memory();
  if (shared == nullptr) return {};
  pc::SourceParams params{};
  params.size = sizeof(params);
  params.cubin = code.cubin.load(std::memory_order_relaxed);
  params.function = shared->strings.text(place.function);
  params.cubin_bytes = code.bytes;
  params.offset = place.pc_offset;
  Source source{};
  if (library_->source_of(&params) == 0 && params.file != nullptr && params.line != 0)
    source = {join(params.folder, params.file), params.line};
  free(params.file);
  free(params.folder);
  return source;
}

Source StallSources::of(const StallKey& place) {
  if (reserved_.load(std::memory_order_relaxed) == 0 || place.cubin == 0 || library_ == nullptr) return {};
  if (library_->source_of == nullptr || library_->checksum == nullptr) return {};
  const Module* code = find(place.cubin);
  if (code == nullptr) return {};
  std::size_t at = slot_of(place) % kKnown;
  for (; known_[at].used; at = (at + 1) % kKnown) {
    const Known& known = known_[at];
    if (known.cubin == place.cubin && known.pc_offset == place.pc_offset && known.function == place.function)
      return known.source;
  }
  if (questions_ == 0 || known_count_ == kKnown / 8 * 7) return {};
  --questions_;
  ++known_count_;
  known_[at] = {place.cubin, place.pc_offset, place.function, ask(*code, place), true};
  return known_[at].source;
}

}  // namespace llmprof::collect::counters
