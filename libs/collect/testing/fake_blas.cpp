// Stands in for a BLAS library in tests: every function stores LLMPROF_FAKE_VALUE into C and calls back if asked to.

#include <cstdint>

extern "C" {

void (*fake_blas_callback)() = nullptr;  // lets a test leave the call by an exception or longjmp

void sgemm_(const char*, const char*, const int*, const int*, const int*, const float*, const float*, const int*,
            const float*, const int*, const float*, float* c, const int*) {
  *c = LLMPROF_FAKE_VALUE;
}

// As in real libraries, one interface calls the other through an exported name, which a preload can catch.
void cblas_sgemm(int, int, int, int m, int n, int k, float alpha, const float* a, int lda, const float* b, int ldb,
                 float beta, float* c, int ldc) {
  sgemm_("N", "N", &m, &n, &k, &alpha, a, &lda, b, &ldb, &beta, c, &ldc);
  if (fake_blas_callback != nullptr) fake_blas_callback();
}

void cblas_dgemm64_(int, int, int, std::int64_t, std::int64_t, std::int64_t, double, const double*, std::int64_t,
                    const double*, std::int64_t, double, double* c, std::int64_t) {
  *c = LLMPROF_FAKE_VALUE;
}

// MKL's plain name in libmkl_fake.so; in other builds of this file a function of somebody else's.
#if LLMPROF_FAKE_MKL
void sgemm(const char*, const char*, const int*, const int*, const int*, const float*, const float*, const int*,
           const float*, const int*, const float*, float* c, const int*) {
  *c = LLMPROF_FAKE_VALUE;
}
#else
double sgemm(double x, int n, double y) { return x * n + y; }
#endif
}
