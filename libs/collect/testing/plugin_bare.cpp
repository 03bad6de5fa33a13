// A library that is linked with no BLAS: it refers weakly to two functions to learn whether there is one, and strongly
// to another, which only a call would need.

#pragma GCC diagnostic ignored "-Wmissing-declarations"
extern "C" {

[[gnu::weak]] void cblas_sgemm(int, int, int, int, int, int, float, const float*, int, const float*, int, float, float*,
                               int);
[[gnu::weak]] int cublasSgemm_v2(void*, ...);
void cblas_dgemm(int, int, int, int, int, int, double, const double*, int, const double*, int, double, double*, int);

// In memory that the loader makes read-only.
extern void* const bare_table[2];
void* const bare_table[2] = {reinterpret_cast<void*>(&cblas_sgemm), reinterpret_cast<void*>(&cublasSgemm_v2)};

// How many of its references lead anywhere.
int bare_references() {
  const volatile auto* table = bare_table;
  int count = 0;
  if (&cblas_sgemm != nullptr) ++count;
  if (&cublasSgemm_v2 != nullptr) ++count;
  if (table[0] != nullptr) ++count;
  if (table[1] != nullptr) ++count;
  return count;
}

// Before anybody could have asked this library for anything: C = 2 A op(B) + C / 2, if it believes that it can.
float early[4] = {2, 2, 2, 2};
[[gnu::constructor]] void multiply_early() {
  const float a[] = {1, 2, 3, 4, 5, 6}, b[] = {1, 0, 1, 0, 1, 0};
  if (&cblas_sgemm != nullptr) cblas_sgemm(101, 111, 112, 2, 2, 3, 2, a, 3, b, 3, 0.5f, early, 2);
}
// A is 2 x 3, B is 2 x 3 and transposed: A op(B) = 4 2, 10 5.
int bare_early_is_right() {
  const bool untouched = early[0] == 2 && early[1] == 2 && early[2] == 2 && early[3] == 2;
  return untouched || (early[0] == 9 && early[1] == 5 && early[2] == 21 && early[3] == 11) ? 1 : 0;
}

float bare_weak_gemm() {
  float x = 0, c = 0;
  if (&cblas_sgemm != nullptr) cblas_sgemm(101, 111, 111, 1, 1, 1, 1, &x, 1, &x, 1, 0, &c, 1);
  return c;
}

void bare_strong_gemm() {
  double x = 0;
  cblas_dgemm(101, 111, 111, 1, 1, 1, 1, &x, 1, &x, 1, 0, &x, 1);
}
}
