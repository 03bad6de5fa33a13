// dlsym(), passed on by a jump: whoever answers sees the caller's own return address, which is what RTLD_NEXT and
// RTLD_DEFAULT go by. Only names that begin with "cublas", asked of a real handle, come back through us. Programs ask
// for functions of BLAS to learn whether there is one: where our hooks alone have the name, the answer is that there is
// none. And dlclose(): what is known about libraries is looked at again when one was unloaded.

#include <dlfcn.h>
#include <link.h>

#include "collect/blas/call.h"
#include "collect/images.h"
#include "collect/os.h"

namespace {

using Dlsym = void* (*)(void* handle, const char* name);
using Dlclose = int (*)(void* handle);
constinit void *next_dlsym = nullptr, *next_dlclose = nullptr;

void* nothing(void*, const char*) { return nullptr; }

int nothing_to_close(void*) { return -1; }

// The C library's, or that of another preload behind us. By its version, because only dlsym itself could ask without.
void* find_next(void** known, const char* name, void* otherwise) {
  void* next = __atomic_load_n(known, __ATOMIC_RELAXED);
  if (next != nullptr) return next;
  for (const char* version : {"GLIBC_2.34", "GLIBC_2.2.5"}) {
    if (next == nullptr) next = dlvsym(RTLD_NEXT, name, version);
  }
  if (next == nullptr) next = otherwise;
  __atomic_store_n(known, next, __ATOMIC_RELAXED);
  return next;
}
void* find_next() { return find_next(&next_dlsym, "dlsym", reinterpret_cast<void*>(&nothing)); }

// By hand: others ask before their own string functions work (a sanitizer's run-time does).
bool begins_with(const char* name, const char* wanted) {
  for (; *wanted != '\0'; ++wanted, ++name) {
    if (*name != *wanted) return false;
  }
  return true;
}

bool is_hooked(const char* name) {
  static constexpr const char* kNames[] = {
#define LLMPROF_BLAS_FUNCTION(symbol, abi, real, bits) #symbol,
#define LLMPROF_BLAS_GUARDED(symbol, abi, real, bits) #symbol,
#define LLMPROF_BLAS_CUDA(symbol, signature, types, bits) #symbol,
#include "collect/blas/functions.def"
  };
  for (const char* hooked : kNames) {
    if (begins_with(name, hooked) && begins_with(hooked, name)) return true;
  }
  return false;
}

void* ask_and_replace(void* handle, const char* name) {
  void* const found = reinterpret_cast<Dlsym>(find_next())(handle, name);
  if (found == nullptr) return nullptr;
  const llmprof::collect::KeepErrno keep;
  return llmprof::collect::blas::hook_for(name, found);
}

// Behind us there is none: the answer, and what dlerror() then says, are the C library's.
void* not_there(void*, const char* name) {
  void* const found = reinterpret_cast<Dlsym>(find_next())(RTLD_NEXT, name);
  asm volatile("" ::: "memory");  // a call, not a jump: "next" is next to us
  return found;
}

}  // namespace

// Where the call goes on, with the same arguments.
extern "C" [[gnu::used]] void* llmprof_dlsym_target(void* handle, const char* name);
extern "C" [[gnu::used]] void* llmprof_dlsym_target(void* handle, const char* name) {
  if (handle != RTLD_NEXT && name != nullptr && is_hooked(name) && !llmprof::collect::blas::is_defined_elsewhere(name))
    return reinterpret_cast<void*>(&not_there);
  const bool of_library = handle != RTLD_DEFAULT && handle != RTLD_NEXT && name != nullptr;
  // What was opened is about to be used.
  if (of_library) {
    const llmprof::collect::KeepErrno keep;
    llmprof::collect::blas::clear_weak_references();
  }
  const bool ours = of_library && begins_with(name, "cublas");
  return ours ? reinterpret_cast<void*>(&ask_and_replace) : find_next();
}

// 24 bytes of frame and the return address keep the stack on a multiple of 16.
extern "C" [[gnu::naked, gnu::visibility("default")]] void* dlsym(void*, const char*) noexcept {
  asm volatile(
      "subq $24, %rsp\n"
      ".cfi_adjust_cfa_offset 24\n"
      "movq %rdi, (%rsp)\n movq %rsi, 8(%rsp)\n"
      "call llmprof_dlsym_target\n"
      "movq (%rsp), %rdi\n movq 8(%rsp), %rsi\n"
      "addq $24, %rsp\n"
      ".cfi_adjust_cfa_offset -24\n"
      "jmp *%rax\n");
}

// Who calls it does not matter to the C library, so this may be a call.
extern "C" [[gnu::visibility("default")]] int dlclose(void* handle) noexcept;
extern "C" [[gnu::visibility("default")]] int dlclose(void* handle) noexcept {
  const auto before = llmprof::collect::count_objects().unloaded;
  void* const next = find_next(&next_dlclose, "dlclose", reinterpret_cast<void*>(&nothing_to_close));
  const int result = reinterpret_cast<Dlclose>(next)(handle);
  const llmprof::collect::KeepErrno keep;
  if (llmprof::collect::count_objects().unloaded == before) return result;
  llmprof::collect::blas::library_unloaded();
  llmprof::collect::blas::forget_objects();
  return result;
}
