#include "collect/blas/wanted_file.h"

#include <string.h>

namespace llmprof::collect::blas {
namespace {

// Number of the version with which the object imports the function; 0: none.
std::uint32_t wanted_version(const Image& image, const char* function) {
  if (image.symbols == nullptr || image.strings == nullptr || image.versions == nullptr) return 0;
  // The GNU hash table leaves out undefined symbols: they all come before its first.
  const std::uint32_t end = image.sysv_hash != nullptr  ? image.sysv_hash[1]
                            : image.gnu_hash != nullptr ? image.gnu_hash[1]
                                                        : 0;
  for (std::uint32_t i = 1; i < end; ++i) {
    const ElfW(Sym)& symbol = image.symbols[i];
    if (symbol.st_shndx == SHN_UNDEF && strcmp(image.strings + symbol.st_name, function) == 0)
      return image.versions[i] & 0x7fffu;
  }
  return 0;
}

const unsigned char* first_need(const Image& image) {
  for (const ElfW(Dyn)* entry = image.dynamic; entry != nullptr && entry->d_tag != DT_NULL; ++entry) {
    const ElfW(Addr) value = entry->d_un.d_ptr;
    if (entry->d_tag == DT_VERNEED)
      return reinterpret_cast<const unsigned char*>(value < image.base ? value + image.base : value);
  }
  return nullptr;
}

bool lists(const unsigned char* need, std::uint32_t version) {
  const auto* file = reinterpret_cast<const ElfW(Verneed)*>(need);
  const unsigned char* at = need + file->vn_aux;
  for (std::uint32_t i = 0; i < file->vn_cnt; ++i) {
    const auto* entry = reinterpret_cast<const ElfW(Vernaux)*>(at);
    if ((entry->vna_other & 0x7fffu) == version) return true;
    at += entry->vna_next;
  }
  return false;
}

}  // namespace

const char* wanted_file(const Image& image, const char* function) {
  const std::uint32_t version = wanted_version(image, function);
  const unsigned char* need = version > 1 ? first_need(image) : nullptr;
  while (need != nullptr) {
    const auto* file = reinterpret_cast<const ElfW(Verneed)*>(need);
    if (lists(need, version)) return image.strings + file->vn_file;
    need = file->vn_next != 0 ? need + file->vn_next : nullptr;
  }
  return nullptr;
}

}  // namespace llmprof::collect::blas
