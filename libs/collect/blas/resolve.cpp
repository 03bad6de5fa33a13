#include "collect/blas/resolve.h"

#include <dlfcn.h>
#include <string.h>

#include "collect/blas/wanted_file.h"
#include "collect/images.h"
#include "collect/undisturbed.h"
#include "collect/unhooked.h"

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

constexpr Function kFirstGpu = k_cublasSgemm_v2;
constexpr Function kLtFunctions = k_cublasLtMatmul;

bool is_gpu(Function function) { return function >= kFirstGpu; }

struct Question {
  Function function;
  std::uintptr_t caller;
  const char* wanted;  // file that the caller's own tables name for the function; null: they do not
  // the answer
  std::uintptr_t target;
  const char* library;
  bool is_ifunc;
  bool may_be_unloaded;
  bool told;
  bool from_library;
  void* helpers[3];
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
  question->target = image.base + symbol->st_value;
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

void resolve(void* context, ImageList list) {
  auto* question = static_cast<Question*>(context);
  const std::size_t self = image_at(list, reinterpret_cast<std::uintptr_t>(&resolve));
  question->told = true;
  if (self == list.count) return;
  const std::size_t caller = image_at(list, question->caller);
  question->from_library = caller < list.count && has_hooked_functions(list.images[caller]);
  if (is_gpu(question->function) && caller < list.count)
    question->wanted = wanted_file(list.images[caller], kNames[question->function]);
  if (search_preloads(list, self, question)) return;
  if (!search_dependencies(list, self, question) && !search_everything(list, self, question)) return;
  question->may_be_unloaded = !is_needed_by_program(list, image_at(list, question->target));
}

void fill(Site* site, Function function, std::uintptr_t address) {
  const Undisturbed undisturbed;  // a handler that jumped out would leave the loader's lock behind
  Question question{function, address, nullptr, 0, "", false, false, false, false, {}};
  with_images(resolve, &question);
  if (question.may_be_unloaded) dlopen(question.library, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
  void* target = reinterpret_cast<void*>(question.target);
  if (question.is_ifunc) target = reinterpret_cast<void* (*)()>(question.target)();
  site->address = address;
  site->function = function;
  site->target = target;
  site->library = question.library;
  site->told = question.told;
  site->from_library = question.from_library;
  site->is_mkl = strstr(base_name(question.library), "mkl") != nullptr;
  memcpy(site->helpers, question.helpers, sizeof(site->helpers));
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

}  // namespace

const char* name_of(Function function) { return kNames[function]; }

Function gpu_function(const char* name) {
  for (std::uint32_t i = kFirstGpu; i < kFunctions; ++i) {
    if (strcmp(kNames[i], name) == 0) return static_cast<Function>(i);
  }
  return kFunctions;
}

namespace {

struct Elsewhere {
  const char* name;
  bool found;
};

void find_elsewhere(void* context, ImageList list) {
  auto* wanted = static_cast<Elsewhere*>(context);
  const std::size_t self = image_at(list, reinterpret_cast<std::uintptr_t>(&find_elsewhere));
  for (std::size_t i = 0; i < list.count && !wanted->found; ++i)
    wanted->found = i != self && find_function(list.images[i], wanted->name) != nullptr;
}

}  // namespace

bool is_defined_elsewhere(const char* name) {
  const Undisturbed undisturbed;
  Elsewhere elsewhere{name, false};
  return !with_images(find_elsewhere, &elsewhere) || elsewhere.found;
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
    if (site->address == address && site->function == function) return site;
  }
  return mine != nullptr ? mine : add_site(function, address);
}

namespace {

void describe_target(void* context, ImageList list) {
  auto* question = static_cast<Question*>(context);
  const std::size_t at = image_at(list, question->target);
  if (at == list.count || !is_cublas(list.images[at])) return;
  question->library = list.images[at].path;
  question->told = true;
  find_helpers(list.images[at], question);
}

}  // namespace

Site* make_handle_site(Function function, void* target) {
  const Undisturbed undisturbed;
  Question question{function, 0, nullptr, reinterpret_cast<std::uintptr_t>(target), "", false, false, false, true, {}};
  with_images(describe_target, &question);
  const std::uint32_t index = question.told ? used_sites.fetch_add(1, std::memory_order_relaxed) : kMaxSites;
  if (index >= kMaxSites) return nullptr;
  dlopen(question.library, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);  // what was handed out stays good
  Site* const site = &sites[index];
  site->function = function;
  site->target = target;
  site->library = question.library;
  site->told = true;
  site->from_library = true;  // anybody may have asked for its address
  memcpy(site->helpers, question.helpers, sizeof(site->helpers));
  return site;
}

namespace {

void find_own_path(void* context, ImageList list) {
  const std::size_t self = image_at(list, reinterpret_cast<std::uintptr_t>(&find_own_path));
  if (self < list.count) *static_cast<const char**>(context) = list.images[self].path;
}

}  // namespace

const char* own_path() {
  const char* path = nullptr;
  with_images(find_own_path, &path);
  return path;
}

}  // namespace llmprof::collect::blas
