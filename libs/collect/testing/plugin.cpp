// A library that calls BLAS through its own undefined symbols, like an extension of Python.

#include <cstdint>

extern "C" {
void cblas_sgemm(int, int, int, int, int, int, float, const float*, int, const float*, int, float, float*, int);
void cblas_dgemm64_(int, int, int, std::int64_t, std::int64_t, std::int64_t, double, const double*, std::int64_t,
                    const double*, std::int64_t, double, double*, std::int64_t);

float plugin_gemm(int m, int n, int k) {
  float a = 0, b = 0, c = 0;
  cblas_sgemm(101, 111, 112, m, n, k, 1, &a, 1, &b, 1, 0, &c, 1);
  return c;
}

double plugin_gemm64(std::int64_t m, std::int64_t n, std::int64_t k) {
  double a = 0, b = 0, c = 0;
  cblas_dgemm64_(102, 112, 111, m, n, k, 1, &a, 1, &b, 1, 0, &c, 1);
  return c;
}

#if LLMPROF_FAKE_MKL
void sgemm(const char*, const char*, const int*, const int*, const int*, const float*, const float*, const int*,
           const float*, const int*, const float*, float*, const int*);
double plugin_plain() {
  const int one = 1, two = 2, three = 3;
  float x = 0, c = 0;
  sgemm("t", "N", &one, &two, &three, &x, &x, &one, &x, &one, &x, &c, &one);
  return c;
}
#else
double sgemm(double x, int n, double y);
double plugin_plain() { return sgemm(1.5, 4, 0.25); }
#endif
}
