// The hooked functions that open files. Each passes its call on to whoever would have got it without us: another
// preload that has the same function, else the C library. Until our constructor has asked who that is, it is the C
// library by its own second name for the function, so that they work at any moment, also inside an allocator that is
// just being set up. No header of the C library that declares them: with large files their names are redirected there.

#include <asm/fcntl.h>
#include <dlfcn.h>
#include <stdarg.h>

namespace llmprof::collect::blas {
void note_opened(const char* path);
void find_next_endings();
void clear_weak_references();
}  // namespace llmprof::collect::blas
using llmprof::collect::blas::note_opened;

extern "C" {
int __open(const char* path, int flags, ...);
void* _IO_fopen(const char* path, const char* mode);
}

namespace {

using Open = int (*)(const char*, int, ...);
using Fopen = void* (*)(const char*, const char*);
constinit Open next_open = __open, next_open64 = __open;
constinit Fopen next_fopen = _IO_fopen, next_fopen64 = _IO_fopen;

template <class Function>
void ask_for(const char* name, Function& next) {
  if (void* const found = dlsym(RTLD_NEXT, name))
    __atomic_store_n(&next, reinterpret_cast<Function>(found), __ATOMIC_RELAXED);
}

[[gnu::constructor]] void find_next() {
  ask_for("open", next_open);
  ask_for("open64", next_open64);
  ask_for("fopen", next_fopen);
  ask_for("fopen64", next_fopen64);
  llmprof::collect::blas::find_next_endings();
  llmprof::collect::blas::clear_weak_references();
}

}  // namespace

extern "C" {

#define LLMPROF_OPEN(name)                                                                     \
  [[gnu::visibility("default")]] int name(const char* path, int flags, ...);                   \
  int name(const char* path, int flags, ...) {                                                 \
    unsigned mode = 0;                                                                         \
    if ((flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE) {                          \
      va_list more;                                                                            \
      va_start(more, flags);                                                                   \
      mode = va_arg(more, unsigned);                                                           \
      va_end(more);                                                                            \
    }                                                                                          \
    const int descriptor = __atomic_load_n(&next_##name, __ATOMIC_RELAXED)(path, flags, mode); \
    if (descriptor >= 0 && (flags & (O_WRONLY | O_RDWR)) == 0) note_opened(path);              \
    return descriptor;                                                                         \
  }
LLMPROF_OPEN(open)
LLMPROF_OPEN(open64)

#define LLMPROF_FOPEN(name)                                                         \
  [[gnu::visibility("default")]] void* name(const char* path, const char* mode);    \
  void* name(const char* path, const char* mode) {                                  \
    void* const file = __atomic_load_n(&next_##name, __ATOMIC_RELAXED)(path, mode); \
    if (file != nullptr && mode[0] == 'r') note_opened(path);                       \
    return file;                                                                    \
  }
LLMPROF_FOPEN(fopen)
LLMPROF_FOPEN(fopen64)

}  // extern "C"
