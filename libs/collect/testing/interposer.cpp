// Somebody else's preload of the same functions: counts, and passes on by RTLD_NEXT.

#include <dlfcn.h>

#include <cstdarg>
#include <cstdio>
#include <cstring>

static int calls = 0;
static int opens = 0;  // of files named *.safetensors: the system's own do not count
static volatile int returned = 0;

extern "C" void cblas_sgemm(int layout, int ta, int tb, int m, int n, int k, float alpha, const float* a, int lda,
                            const float* b, int ldb, float beta, float* c, int ldc) {
  ++calls;
  const auto next = reinterpret_cast<decltype(&cblas_sgemm)>(dlsym(RTLD_NEXT, "cblas_sgemm"));
  next(layout, ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
  returned = returned + 1;  // keeps the call from becoming a jump: the callee sees this library as its caller
}

static int pass_on(const char* name, const char* path, int flags, unsigned mode) {
  if (path != nullptr && std::strstr(path, ".safetensors") != nullptr) ++opens;
  return reinterpret_cast<int (*)(const char*, int, ...)>(dlsym(RTLD_NEXT, name))(path, flags, mode);
}

// The mode is passed on even where there is none: what is then read is not used.
#define INTERPOSE(name)                                   \
  extern "C" int name(const char* path, int flags, ...) { \
    va_list more;                                         \
    va_start(more, flags);                                \
    const unsigned mode = va_arg(more, unsigned);         \
    va_end(more);                                         \
    return pass_on(#name, path, flags, mode);             \
  }
INTERPOSE(open)
INTERPOSE(open64)

[[gnu::destructor]] static void report() {
  if (calls > 0) std::printf("interposer %d\n", calls);
  if (opens > 0) std::printf("opens %d\n", opens);
}
