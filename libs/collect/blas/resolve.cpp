#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "collect/blas/call.h"
#include "collect/images.h"
#include "collect/os.h"

namespace llmprof::collect::blas {

namespace {

constexpr const char* kNames[] = {
#define LLMPROF_BLAS_FUNCTION(name, abi, real, bits) #name,
#define LLMPROF_BLAS_GUARDED(name, abi, real, bits) #name,
#define LLMPROF_BLAS_CUDA(name, signature, types, bits) #name,
#include "collect/blas/functions.def"
};

// Call sites in open addressing. When all are taken (code made at run time can have any number) the rest is resolved
// at every call: slow, right, and bounded in memory.
constexpr std::uint32_t kMaxSites = 4096;
constexpr std::uint32_t kSlots = kMaxSites * 2;
constinit Site sites[kMaxSites]{};
constinit std::atomic<std::uint32_t> used_sites{0};
constinit std::atomic<Site*> slots[kSlots]{};

constexpr Function kLtFunctions = k_cublasLtMatmul;

constinit std::atomic<std::uint32_t> generation{1};

bool is_gpu(Function function) { return function >= kFirstGpu; }

// Paths of libraries, each once: the loader's own go with the library. Used inside walks, which exclude each other.
struct Paths {
  char text[32768];
  std::size_t used;
  const char* keep(const char* path) {
    for (std::size_t at = 0; at < used; at += strlen(text + at) + 1) {
      if (strcmp(text + at, path) == 0) return text + at;
    }
    const std::size_t bytes = strlen(path) + 1;
    if (used + bytes > sizeof(text)) return "";
    char* const kept = text + used;
    memcpy(kept, path, bytes);
    used += bytes;
    return kept;
  }
};
constinit Paths paths{};

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

// The file an object names for a function that it imports; null: none. Libraries such as cuBLAS give their symbols the
// version "libcublas.so.13": an object linked with it must never end in a libcublas.so.12, whoever is loaded first.
const char* wanted_file(const Image& image, const char* function) {
  std::uint32_t version = 0;
  any_import(image, [&](const Import& import) {
    if (strcmp(import.name, function) == 0) version = import.version;
    return version != 0;
  });
  const unsigned char* need = version > 1 ? first_need(image) : nullptr;
  while (need != nullptr) {
    const auto* file = reinterpret_cast<const ElfW(Verneed)*>(need);
    if (lists(need, version)) return image.strings + file->vn_file;
    need = file->vn_next != 0 ? need + file->vn_next : nullptr;
  }
  return nullptr;
}

struct Question : Answer {
  Function function;
  std::uintptr_t caller;
  const char* wanted;  // file that the caller's own tables name for the function; null: they do not
  bool is_ifunc;
};

void find_helpers(const Image& image, Question* question) {
  constexpr const char* kOfCublas[] = {"cublasGetMathMode"};
  constexpr const char* kOfLt[] = {"cublasLtMatrixLayoutGetAttribute", "cublasLtMatmulDescGetAttribute",
                                   "cublasLtMatmulAlgoConfigGetAttribute"};
  const bool lt = question->function == kLtFunctions;
  const char* const* names = lt ? kOfLt : kOfCublas;
  for (std::size_t i = 0; i < (lt ? 3u : 1u); ++i) {
    const ElfW(Sym)* symbol = find_function(image, names[i]);
    question->helpers[i] = symbol != nullptr ? reinterpret_cast<void*>(image.base + symbol->st_value) : nullptr;
  }
}

// Takes image `i` for the answer if it defines the function.
bool answer(ImageList list, std::size_t i, Question* question) {
  const Image& image = list.images[i];
  const ElfW(Sym)* symbol = find_function(image, kNames[question->function]);
  if (symbol == nullptr) return false;
  if (question->wanted != nullptr && (image.soname == nullptr || strcmp(image.soname, question->wanted) != 0))
    return false;
  question->target = reinterpret_cast<void*>(image.base + symbol->st_value);
  question->is_ifunc = (symbol->st_info & 0xf) == STT_GNU_IFUNC;
  question->library = image.path;
  if (is_gpu(question->function)) find_helpers(image, question);
  return true;
}

bool is_needed_by_program(ImageList list, std::size_t i) {
  closure(list, 0);
  return list.images[i].reached;
}

// Libraries preloaded after us stand directly behind us. They expect to see the call, as they would without us.
bool search_preloads(ImageList list, std::size_t self, Question* question) {
  for (std::size_t i = self + 1; i < list.count && !is_needed_by_program(list, i); ++i) {
    if (answer(list, i, question)) return true;
  }
  return false;
}

// What the caller was linked with. This is what makes extensions of Python work, which are loaded for themselves
// (RTLD_LOCAL), and what keeps two versions of a library apart.
bool search_dependencies(ImageList list, std::size_t self, Question* question) {
  const std::size_t caller = image_at(list, question->caller);
  if (caller == list.count) return false;
  const std::size_t reached = closure(list, caller);
  for (std::size_t i = 0; i < reached; ++i) {
    // What stands before us was asked before us: a preload that passes its call on must not get it back.
    if (list.order[i] > self && answer(list, list.order[i], question)) return true;
  }
  return false;
}

// Where several libraries have the function, the loader has chosen one of them for the caller: what else the caller
// imports from it is bound there. A handle that one copy of cuBLAS made must not enter another.
bool search_witness(ImageList list, std::size_t self, Question* question) {
  const std::size_t caller = image_at(list, question->caller);
  if (caller == list.count || !is_gpu(question->function)) return false;
  std::size_t candidates = 0;
  for (std::size_t i = 0; i < list.count; ++i) {
    Question other = *question;
    candidates += i != self && answer(list, i, &other) ? 1 : 0;
  }
  const auto is_witness = [&](const Import& import) {
    if (strncmp(import.name, "cublas", 6) != 0) return false;
    std::uintptr_t address;
    memcpy(&address, import.slot, sizeof(address));
    const std::size_t at = image_at(list, address);
    // Our own hooks say nothing, and neither does what is not bound yet, which leads into the caller itself.
    return at < list.count && at != self && at != caller && answer(list, at, question);
  };
  return candidates > 1 && any_slot(list.images[caller], is_witness);
}

// Anything that is loaded after us, in the loader's order, as RTLD_NEXT would (and what it does not see).
bool search_everything(ImageList list, std::size_t self, Question* question) {
  std::size_t candidates = 0;
  for (std::size_t i = self + 1; i < list.count; ++i) {
    Question other = *question;
    if (answer(list, i, candidates == 0 ? question : &other)) ++candidates;
  }
  question->told = candidates == 1;
  return candidates > 0;
}

bool has_hooked_functions(const Image& image) {
  for (const char* name : kNames) {
    if (find_function(image, name) != nullptr) return true;
  }
  return false;
}

std::size_t own_image(ImageList list) { return image_at(list, reinterpret_cast<std::uintptr_t>(&own_image)); }

void resolve(ImageList list, Question* question) {
  const std::size_t self = own_image(list);
  question->told = true;
  if (self == list.count) return;
  const std::size_t caller = image_at(list, question->caller);
  question->from_library = caller < list.count && has_hooked_functions(list.images[caller]);
  if (is_gpu(question->function) && caller < list.count)
    question->wanted = wanted_file(list.images[caller], kNames[question->function]);
  if (search_preloads(list, self, question) || search_witness(list, self, question) ||
      search_dependencies(list, self, question) || search_everything(list, self, question))
    question->library = paths.keep(question->library);
}

void fill(Site* site, Function function, std::uintptr_t address) {
  const Undisturbed undisturbed;  // a handler that jumped out would leave the loader's lock behind
  Question question{{.library = ""}, function, address, nullptr, false};
  const std::uint32_t now = generation.load(std::memory_order_acquire);
  with_images([&](ImageList list) { resolve(list, &question); });
  if (question.is_ifunc) question.target = reinterpret_cast<void* (*)()>(question.target)();
  if (question.target == nullptr) question.target = dlsym(RTLD_NEXT, kNames[function]);
  static_cast<Answer&>(*site) = question;
  site->address = address;
  site->function = function;
  site->is_mkl = strstr(base_name(question.library), "mkl") != nullptr;
  site->generation.store(now, std::memory_order_relaxed);
}

const Site* add_site(Function function, std::uintptr_t address) {
  static __thread Site unlisted{};  // for when the table is full
  const std::uint32_t index = used_sites.fetch_add(1, std::memory_order_relaxed);
  Site* site = index < kMaxSites ? &sites[index] : &unlisted;
  if (index >= kMaxSites) used_sites.store(kMaxSites, std::memory_order_relaxed);
  fill(site, function, address);
  site->library_id.store(0, std::memory_order_relaxed);
  site->function_id.store(0, std::memory_order_relaxed);
  return site;
}

// Mostly nothing has changed for a place. Else it gets a site of its own in the slot of the old one, which stays: other
// threads may be reading it.
const Site* look_again(std::atomic<Site*>& slot, Site* site) {
  Site fresh{};
  fill(&fresh, site->function, site->address);
  if (static_cast<const Answer&>(*site) == fresh) {
    site->generation.store(fresh.generation.load(std::memory_order_relaxed), std::memory_order_release);
    return site;
  }
  const Site* mine = add_site(site->function, site->address);
  const bool listed = mine >= sites && mine < sites + kMaxSites;
  if (listed && mine->target != nullptr) slot.compare_exchange_strong(site, const_cast<Site*>(mine));
  return mine;
}

}  // namespace

const char* name_of(Function function) { return kNames[function]; }

Function function_of(const char* name, Function first) {
  for (std::uint32_t i = first; i < kFunctions; ++i) {
    if (strcmp(kNames[i], name) == 0) return static_cast<Function>(i);
  }
  return kFunctions;
}

void library_unloaded() { generation.fetch_add(1, std::memory_order_acq_rel); }

void end_unresolved(Function function) {
  char text[512];
  const int length = snprintf(text, sizeof(text), "%s: symbol lookup error: undefined symbol: %s\n",
                              program_invocation_name, name_of(function));
  const bool said = length > 0 && write(STDERR_FILENO, text, static_cast<std::size_t>(length)) == length;
  _exit(said ? 127 : 126);
}

bool is_defined_elsewhere(const char* name) {
  const Undisturbed undisturbed;
  bool found = false;
  const auto look = [&](ImageList list) {
    const std::size_t self = own_image(list);
    for (std::size_t i = 0; i < list.count && !found; ++i)
      found = i != self && find_function(list.images[i], name) != nullptr;
  };
  return !with_images(look) || found;
}

const Site* find_site(Function function, std::uintptr_t address) {
  const std::uint64_t hash = (address ^ (static_cast<std::uint64_t>(function) << 40)) * 0x9E3779B97F4A7C15u;
  Site* mine = nullptr;
  for (std::uint32_t probe = 0; probe < kSlots; ++probe) {
    std::atomic<Site*>& slot = slots[((hash >> 40) + probe) % kSlots];
    Site* site = slot.load(std::memory_order_acquire);
    if (site == nullptr) {
      if (mine == nullptr) mine = const_cast<Site*>(add_site(function, address));
      // A function that is nowhere now may be loaded later; an unlisted site is this thread's only.
      const bool listed = mine >= sites && mine < sites + kMaxSites;
      if (mine->target == nullptr || !listed) return mine;
      if (slot.compare_exchange_strong(site, mine, std::memory_order_acq_rel)) return mine;
    }
    if (site->address != address || site->function != function) continue;
    if (site->generation.load(std::memory_order_acquire) == generation.load(std::memory_order_relaxed)) [[likely]]
      return site;
    return look_again(slot, site);
  }
  return mine != nullptr ? mine : add_site(function, address);
}

Site* make_handle_site(Function function, void* target) {
  const Undisturbed undisturbed;
  // Anybody may have asked for its address: it counts as called from a library.
  Question question{{.target = target, .library = "", .from_library = true}, function, 0, nullptr, false};
  with_images([&](ImageList list) {
    const std::size_t at = image_at(list, reinterpret_cast<std::uintptr_t>(target));
    if (at == list.count || !is_cublas(list.images[at])) return;
    question.library = paths.keep(list.images[at].path);
    question.told = true;
    find_helpers(list.images[at], &question);
  });
  const std::uint32_t index = question.told ? used_sites.fetch_add(1, std::memory_order_relaxed) : kMaxSites;
  if (index >= kMaxSites) return nullptr;
  Site* const site = &sites[index];
  static_cast<Answer&>(*site) = question;
  site->function = function;
  return site;
}

bool refers_weakly(Function function, std::uintptr_t return_address) {
  const Undisturbed undisturbed;
  bool weak = false;
  with_images([&](ImageList list) {
    const std::size_t caller = image_at(list, return_address);
    if (caller == list.count) return;
    weak = any_import(list.images[caller],
                      [&](const Import& import) { return import.weak && strcmp(import.name, kNames[function]) == 0; });
  });
  return weak;
}

bool is_loaded(const void* address) {
  const Undisturbed undisturbed;
  bool loaded = false;
  const auto look = [&](ImageList list) {
    loaded = image_at(list, reinterpret_cast<std::uintptr_t>(address)) < list.count;
  };
  return !with_images(look) || loaded;
}

const char* own_path() {
  const char* path = nullptr;
  with_images([&](ImageList list) {
    const std::size_t self = own_image(list);
    if (self < list.count) path = list.images[self].path;
  });
  return path;
}

}  // namespace llmprof::collect::blas
