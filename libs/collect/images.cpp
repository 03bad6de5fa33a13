#include "collect/images.h"

#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <atomic>

#include "collect/os.h"

namespace llmprof::collect {

namespace {

constexpr std::size_t kMaxImages = 2048;
constexpr std::size_t kScratchBytes = kMaxImages * (sizeof(Image) + sizeof(std::uint16_t));

// The loader relocates these pointers in place, except in objects it did not map (the vdso).
template <class T>
const T* pointer(const Image& image, ElfW(Addr) value) {
  return reinterpret_cast<const T*>(value < image.base ? value + image.base : value);
}

void read_dynamic(Image* image) {
  ElfW(Addr) soname = 0;
  bool named = false;
  for (const ElfW(Dyn)* entry = image->dynamic; entry != nullptr && entry->d_tag != DT_NULL; ++entry) {
    const ElfW(Addr) value = entry->d_un.d_ptr;
    switch (entry->d_tag) {
      case DT_STRTAB:
        image->strings = pointer<char>(*image, value);
        break;
      case DT_SYMTAB:
        image->symbols = pointer<ElfW(Sym)>(*image, value);
        break;
      case DT_GNU_HASH:
        image->gnu_hash = pointer<std::uint32_t>(*image, value);
        break;
      case DT_HASH:
        image->sysv_hash = pointer<std::uint32_t>(*image, value);
        break;
      case DT_VERSYM:
        image->versions = pointer<ElfW(Half)>(*image, value);
        break;
      case DT_SONAME:
        soname = value, named = true;
        break;
      default:
        break;
    }
  }
  if (named && image->strings != nullptr) image->soname = image->strings + soname;
}

int collect_image(dl_phdr_info* info, std::size_t, void* context) {
  auto* list = static_cast<ImageList*>(context);
  if (list->count == kMaxImages) return 1;
  Image image{};
  image.path = info->dlpi_name != nullptr ? info->dlpi_name : "";
  image.base = info->dlpi_addr;
  image.low = ~std::uintptr_t{0};
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)& header = info->dlpi_phdr[i];
    const std::uintptr_t begin = info->dlpi_addr + header.p_vaddr;
    if (header.p_type == PT_DYNAMIC) image.dynamic = reinterpret_cast<const ElfW(Dyn)*>(begin);
    if (header.p_type == PT_GNU_RELRO) image.relro_low = begin, image.relro_high = begin + header.p_memsz;
    if (header.p_type != PT_LOAD) continue;
    if (begin < image.low) image.low = begin;
    if (begin + header.p_memsz > image.high) image.high = begin + header.p_memsz;
  }
  read_dynamic(&image);
  list->images[list->count++] = image;
  return 0;
}

struct Visit {
  void (*visit)(void* context, ImageList list);
  void* context;
  ImageList list;
};

// Runs inside a callback of dl_iterate_phdr, whose lock is recursive: the inner walk collects, and everything stays
// where it is until the outer one ends (at its first object).
int visit_locked(dl_phdr_info*, std::size_t, void* context) {
  auto* visit = static_cast<Visit*>(context);
  dl_iterate_phdr(collect_image, &visit->list);
  visit->visit(visit->context, visit->list);
  return 1;
}

enum class Wanted { kFunction, kVariable };

bool is_exported(const Image& image, std::uint32_t index, const char* name, Wanted wanted) {
  const ElfW(Sym)& symbol = image.symbols[index];
  const unsigned type = symbol.st_info & 0xf, binding = symbol.st_info >> 4;
  const bool function = type == STT_FUNC || type == STT_GNU_IFUNC || type == STT_NOTYPE;  // some are in assembler
  if (symbol.st_shndx == SHN_UNDEF || (wanted == Wanted::kFunction ? !function : type != STT_OBJECT)) return false;
  if (binding != STB_GLOBAL && binding != STB_WEAK) return false;
  if (image.versions != nullptr && (image.versions[index] & 0x8000) != 0) return false;  // an old, hidden version
  return strcmp(image.strings + symbol.st_name, name) == 0;
}

const ElfW(Sym) * find_by_gnu_hash(const Image& image, const char* name, Wanted wanted) {
  std::uint32_t hash = 5381;
  for (const char* at = name; *at != '\0'; ++at) hash = hash * 33 + static_cast<unsigned char>(*at);
  const std::uint32_t* table = image.gnu_hash;
  const std::uint32_t buckets = table[0], first = table[1], bloom_words = table[2];
  if (buckets == 0) return nullptr;
  const std::uint32_t* bucket = table + 4 + bloom_words * (sizeof(ElfW(Addr)) / 4);
  const std::uint32_t* chain = bucket + buckets;
  std::uint32_t index = bucket[hash % buckets];
  if (index < first) return nullptr;
  for (;; ++index) {
    const std::uint32_t entry = chain[index - first];
    if ((entry | 1) == (hash | 1) && is_exported(image, index, name, wanted)) return &image.symbols[index];
    if ((entry & 1) != 0) return nullptr;
  }
}

const ElfW(Sym) * find_by_sysv_hash(const Image& image, const char* name, Wanted wanted) {
  std::uint32_t hash = 0;
  for (const char* at = name; *at != '\0'; ++at) {
    hash = (hash << 4) + static_cast<unsigned char>(*at);
    const std::uint32_t high = hash & 0xf0000000u;
    hash = (hash ^ (high >> 24)) & ~high;
  }
  const std::uint32_t* table = image.sysv_hash;
  if (table[0] == 0) return nullptr;
  const std::uint32_t* chain = table + 2 + table[0];
  for (std::uint32_t index = table[2 + hash % table[0]]; index != 0; index = chain[index]) {
    if (is_exported(image, index, name, wanted)) return &image.symbols[index];
  }
  return nullptr;
}

const ElfW(Sym) * find_symbol(const Image& image, const char* name, Wanted wanted) {
  if (image.symbols == nullptr || image.strings == nullptr) return nullptr;
  if (image.gnu_hash != nullptr) return find_by_gnu_hash(image, name, wanted);
  return image.sysv_hash != nullptr ? find_by_sysv_hash(image, name, wanted) : nullptr;
}

std::size_t find_needed(ImageList list, const char* needed) {
  const char* wanted = base_name(needed);
  for (std::size_t i = 0; i < list.count; ++i) {
    const Image& image = list.images[i];
    if (image.soname != nullptr && strcmp(image.soname, wanted) == 0) return i;
    if (*image.path != '\0' && strcmp(base_name(image.path), wanted) == 0) return i;
  }
  return list.count;
}

}  // namespace

bool with_images(void (*visit)(void* context, ImageList list), void* context) {
  auto* images = static_cast<Image*>(map_memory(kScratchBytes));
  if (images == nullptr) return false;
  Visit call{visit, context, {images, 0, reinterpret_cast<std::uint16_t*>(images + kMaxImages)}};
  walk_objects(visit_locked, &call);
  munmap(images, kScratchBytes);
  return true;
}

const ElfW(Sym) * find_function(const Image& image, const char* name) {
  return find_symbol(image, name, Wanted::kFunction);
}

const ElfW(Sym) * find_variable(const Image& image, const char* name) {
  return find_symbol(image, name, Wanted::kVariable);
}

namespace {

Import import_of(const Image& image, const ElfW(Sym) & symbol) {
  const auto version = image.versions != nullptr ? image.versions[&symbol - image.symbols] & 0x7fffu : 0u;
  return {image.strings + symbol.st_name,
          static_cast<unsigned>(symbol.st_info) >> 4 == STB_WEAK,
          static_cast<std::uint16_t>(version),
          nullptr,
          0,
          false};
}

struct SlotKinds {
  std::uint32_t address, data, call;
};
#if defined(__x86_64__)
constexpr SlotKinds kKinds = {R_X86_64_GLOB_DAT, R_X86_64_64, R_X86_64_JUMP_SLOT};
#elif defined(__aarch64__)
constexpr SlotKinds kKinds = {R_AARCH64_GLOB_DAT, R_AARCH64_ABS64, R_AARCH64_JUMP_SLOT};
#else
constexpr SlotKinds kKinds = {~0u, ~0u, ~0u};
#endif

struct Relocations {
  const ElfW(Rela) * first;
  std::size_t bytes;
};

bool any_slot_of(const Image& image, const Relocations& table, bool (*visit)(void* context, const Import& import),
                 void* context) {
  for (std::size_t i = 0; table.first != nullptr && i < table.bytes / sizeof(ElfW(Rela)); ++i) {
    const ElfW(Rela)& entry = table.first[i];
    const auto kind = static_cast<std::uint32_t>(entry.r_info), index = static_cast<std::uint32_t>(entry.r_info >> 32);
    if (index == 0 || (kind != kKinds.address && kind != kKinds.data && kind != kKinds.call)) continue;
    if (image.symbols[index].st_shndx != SHN_UNDEF) continue;
    Import import = import_of(image, image.symbols[index]);
    import.slot = reinterpret_cast<void*>(image.base + entry.r_offset);
    import.addend = kind == kKinds.data ? entry.r_addend : 0;
    import.is_call = kind == kKinds.call;
    if (visit(context, import)) return true;
  }
  return false;
}

}  // namespace

bool any_slot(const Image& image, bool (*visit)(void* context, const Import& import), void* context) {
  if (image.symbols == nullptr || image.strings == nullptr) return false;
  Relocations plain{}, calls{};
  for (const ElfW(Dyn)* entry = image.dynamic; entry != nullptr && entry->d_tag != DT_NULL; ++entry) {
    if (entry->d_tag == DT_RELA) plain.first = pointer<ElfW(Rela)>(image, entry->d_un.d_ptr);
    if (entry->d_tag == DT_RELASZ) plain.bytes = entry->d_un.d_val;
    if (entry->d_tag == DT_JMPREL) calls.first = pointer<ElfW(Rela)>(image, entry->d_un.d_ptr);
    if (entry->d_tag == DT_PLTRELSZ) calls.bytes = entry->d_un.d_val;
  }
  return any_slot_of(image, calls, visit, context) || any_slot_of(image, plain, visit, context);
}

bool any_import(const Image& image, bool (*visit)(void* context, const Import& import), void* context) {
  if (image.symbols == nullptr || image.strings == nullptr) return false;
  // The GNU hash table leaves out undefined symbols: they all come before its first.
  const std::uint32_t end = image.sysv_hash != nullptr  ? image.sysv_hash[1]
                            : image.gnu_hash != nullptr ? image.gnu_hash[1]
                                                        : 0;
  for (std::uint32_t i = 1; i < end; ++i) {
    if (image.symbols[i].st_shndx == SHN_UNDEF && visit(context, import_of(image, image.symbols[i]))) return true;
  }
  return false;
}

std::size_t closure(ImageList list, std::size_t root) {
  for (std::size_t i = 0; i < list.count; ++i) list.images[i].reached = false;
  std::size_t found = 0;
  list.order[found++] = static_cast<std::uint16_t>(root);
  list.images[root].reached = true;
  for (std::size_t at = 0; at < found; ++at) {
    const Image& image = list.images[list.order[at]];
    if (image.strings == nullptr) continue;
    for (const ElfW(Dyn)* entry = image.dynamic; entry != nullptr && entry->d_tag != DT_NULL; ++entry) {
      if (entry->d_tag != DT_NEEDED) continue;
      const std::size_t needed = find_needed(list, image.strings + entry->d_un.d_val);
      if (needed == list.count || list.images[needed].reached) continue;
      list.images[needed].reached = true;
      list.order[found++] = static_cast<std::uint16_t>(needed);
    }
  }
  return found;
}

std::size_t image_at(ImageList list, std::uintptr_t address) {
  for (std::size_t i = 0; i < list.count; ++i) {
    if (address >= list.images[i].low && address < list.images[i].high) return i;
  }
  return list.count;
}

const char* base_name(const char* path) {
  const char* slash = strrchr(path, '/');
  return slash != nullptr ? slash + 1 : path;
}

namespace {

std::atomic<std::uint32_t> walks{0}, forks{0};  // under way
std::atomic<bool> handlers{false};

// A fork inside a walk (a signal handler may do that) must not wait for itself for ever.
template <class Done>
void wait_briefly(Done done) {
  constexpr int kTimes = 1000;
  constexpr timespec kPause = {0, 50'000};
  for (int i = 0; i < kTimes && !done(); ++i) nanosleep(&kPause, nullptr);
}

void before_fork() {
  const KeepErrno keep;
  forks.fetch_add(1);
  wait_briefly([] { return walks.load() == 0; });
}

void in_parent() { forks.fetch_sub(1); }

// Only the forking thread lives on, and it does not walk.
void in_child() {
  walks.store(0);
  forks.store(0);
}

void begin_walk() {
  walks.fetch_add(1);
  if (forks.load() == 0) return;
  walks.fetch_sub(1);  // the fork came first
  wait_briefly([] { return forks.load() == 0; });
  walks.fetch_add(1);
}

}  // namespace

void walk_objects(int (*visit)(dl_phdr_info* info, std::size_t size, void* context), void* context) {
  if (!handlers.exchange(true)) pthread_atfork(before_fork, in_parent, in_child);
  begin_walk();
  dl_iterate_phdr(visit, context);
  walks.fetch_sub(1);
}

ObjectCounts count_objects() {
  ObjectCounts counts{};
  const auto read = [](dl_phdr_info* info, std::size_t, void* context) {
    *static_cast<ObjectCounts*>(context) = {info->dlpi_adds, info->dlpi_subs};
    return 1;
  };
  walk_objects(read, &counts);
  return counts;
}

namespace {

constexpr const char* kCpuNames[] = {
#define LLMPROF_BLAS_FUNCTION(name, abi, real, bits) #name,
#include "collect/blas/functions.def"
};
constexpr const char* kGpuNames[] = {
#define LLMPROF_BLAS_CUDA(name, signature, types, bits) #name,
#include "collect/blas/functions.def"
};

template <std::size_t N>
bool contains(const char* const (&names)[N], const char* name) {
  for (const char* hooked : names) {
    if (strcmp(hooked, name) == 0) return true;
  }
  return false;
}

bool is_hooked_name(const char* name) {
  if (strncmp(name, "cublas", 6) == 0) return contains(kGpuNames, name);
  return strstr(name, "gem") != nullptr && contains(kCpuNames, name);
}

bool defines_blas(const Image& image) {
  if (is_cublas(image)) return true;
  for (const char* name : kCpuNames) {
    if (find_function(image, name) != nullptr) return true;
  }
  return false;
}

bool is_our_preload(const Image& image) { return strcmp(base_name(image.path), "libllmprof_blas.so") == 0; }

// Everything that an importer's calls may end in goes through us first, since our names come before theirs.
void mark_hooked(ImageList list, std::size_t importer, bool itself) {
  const std::size_t reached = closure(list, importer);
  for (std::size_t i = itself ? 0 : 1; i < reached; ++i) list.images[list.order[i]].hooked = true;
}

}  // namespace

bool is_cublas(const Image& image) {
  if (image.soname == nullptr) return false;
  return strncmp(image.soname, "libcublas.so.", 13) == 0 || strncmp(image.soname, "libcublasLt.so.", 15) == 0;
}

void find_unhooked_blas(ImageList list, bool (*is_provider)(const char* path)) {
  bool preloaded = false;
  for (std::size_t i = 0; i < list.count; ++i) preloaded = preloaded || is_our_preload(list.images[i]);
  for (std::size_t i = 0; preloaded && i < list.count; ++i) {
    if (is_our_preload(list.images[i])) continue;
    const bool provider = is_provider(list.images[i].path);
    const auto is_hooked_import = [](const Import& import) { return is_hooked_name(import.name); };
    const bool imports = !is_cublas(list.images[i]) && any_import(list.images[i], is_hooked_import);  // it calls itself
    if (provider || imports) mark_hooked(list, i, provider);
  }
  for (std::size_t i = 0; i < list.count; ++i) {
    Image& image = list.images[i];
    image.unhooked = !image.hooked && !is_our_preload(image) && defines_blas(image);
  }
}

}  // namespace llmprof::collect
