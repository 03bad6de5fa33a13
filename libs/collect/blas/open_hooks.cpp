// The hooked functions that open files. Each does what the C library's does, by the C library's own second name for it:
// nothing is looked up, so that they work at any moment, also inside an allocator that is just being set up.
// No header of the C library that declares them: with large files their names are redirected there.

#include <asm/fcntl.h>
#include <stdarg.h>

namespace llmprof::collect::blas {
void note_opened(const char* path);
}
using llmprof::collect::blas::note_opened;

extern "C" {

int __open(const char* path, int flags, ...);
void* _IO_fopen(const char* path, const char* mode);

#define LLMPROF_OPEN(name)                                                        \
  [[gnu::visibility("default")]] int name(const char* path, int flags, ...);      \
  int name(const char* path, int flags, ...) {                                    \
    unsigned mode = 0;                                                            \
    if ((flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE) {             \
      va_list more;                                                               \
      va_start(more, flags);                                                      \
      mode = va_arg(more, unsigned);                                              \
      va_end(more);                                                               \
    }                                                                             \
    const int descriptor = __open(path, flags, mode);                             \
    if (descriptor >= 0 && (flags & (O_WRONLY | O_RDWR)) == 0) note_opened(path); \
    return descriptor;                                                            \
  }
LLMPROF_OPEN(open)
LLMPROF_OPEN(open64)

#define LLMPROF_FOPEN(name)                                                      \
  [[gnu::visibility("default")]] void* name(const char* path, const char* mode); \
  void* name(const char* path, const char* mode) {                               \
    void* const file = _IO_fopen(path, mode);                                    \
    if (file != nullptr && mode[0] == 'r') note_opened(path);                    \
    return file;                                                                 \
  }
LLMPROF_FOPEN(fopen)
LLMPROF_FOPEN(fopen64)

}  // extern "C"
