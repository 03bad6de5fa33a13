// Somebody else's preload of the same function: counts, and passes on by RTLD_NEXT.

#include <dlfcn.h>

#include <cstdio>

static int calls = 0;
static volatile int returned = 0;

extern "C" void cblas_sgemm(int layout, int ta, int tb, int m, int n, int k, float alpha, const float* a, int lda,
                            const float* b, int ldb, float beta, float* c, int ldc) {
  ++calls;
  const auto next = reinterpret_cast<decltype(&cblas_sgemm)>(dlsym(RTLD_NEXT, "cblas_sgemm"));
  next(layout, ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
  returned = returned + 1;  // keeps the call from becoming a jump: the callee sees this library as its caller
}

[[gnu::destructor]] static void report() {
  if (calls > 0) std::printf("interposer %d\n", calls);
}
