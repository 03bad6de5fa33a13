// A program under test that is linked with OpenBLAS and uses it in every spelling it has. Checks the numbers.

#include <cblas.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

extern "C" {
void sgemm_(const char*, const char*, const int*, const int*, const int*, const float*, const float*, const int*,
            const float*, const int*, const float*, float*, const int*);
void dgemm_(const char*, const char*, const int*, const int*, const int*, const double*, const double*, const int*,
            const double*, const int*, const double*, double*, const int*);
void sgemv_(const char*, const int*, const int*, const float*, const float*, const int*, const float*, const int*,
            const float*, float*, const int*);
void dgemv_(const char*, const int*, const int*, const double*, const double*, const int*, const double*, const int*,
            const double*, double*, const int*);
}

namespace {

// All matrices hold ones, so every element of the product is k.
template <class T>
bool all(const std::vector<T>& values, T expected) {
  for (const T value : values) {
    if (value != expected) return false;
  }
  return true;
}

template <class T>
std::vector<T> ones(int count) {
  return std::vector<T>(static_cast<std::size_t>(count), T(1));
}

bool gemms() {
  const int m = 3, n = 5, k = 7;
  auto a = ones<float>(m * k), b = ones<float>(k * n), c = ones<float>(m * n);
  auto da = ones<double>(m * k), db = ones<double>(k * n), dc = ones<double>(m * n);
  const float one = 1, zero = 0;
  const double done = 1, dzero = 0;
  bool good = true;
  cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, m, n, k, 1, a.data(), k, b.data(), k, 0, c.data(), n);
  good = good && all(c, 7.0f);
  cblas_dgemm(CblasColMajor, CblasTrans, CblasNoTrans, m, n, k, 1, da.data(), k, db.data(), k, 0, dc.data(), m);
  good = good && all(dc, 7.0);
  c = ones<float>(m * n), dc = ones<double>(m * n);
  sgemm_("N", "T", &m, &n, &k, &one, a.data(), &m, b.data(), &n, &zero, c.data(), &m);
  dgemm_("t", "c", &m, &n, &k, &done, da.data(), &k, db.data(), &n, &dzero, dc.data(), &m);
  return good && all(c, 7.0f) && all(dc, 7.0);
}

bool gemvs() {
  const int m = 3, n = 5, step = 1;
  const float one = 1, zero = 0;
  const double done = 1, dzero = 0;
  auto a = ones<float>(m * n), x = ones<float>(5), y3 = ones<float>(3), y5 = ones<float>(5);
  auto da = ones<double>(m * n), dx = ones<double>(5), dy3 = ones<double>(3), dy5 = ones<double>(5);
  cblas_sgemv(CblasRowMajor, CblasNoTrans, m, n, 1, a.data(), n, x.data(), 1, 0, y3.data(), 1);   // 3 x 5
  cblas_dgemv(CblasColMajor, CblasTrans, m, n, 1, da.data(), m, dx.data(), 1, 0, dy5.data(), 1);  // 5 x 3
  bool good = all(y3, 5.0f) && all(dy5, 3.0);
  sgemv_("T", &m, &n, &one, a.data(), &m, x.data(), &step, &zero, y5.data(), &step);
  dgemv_("N", &m, &n, &done, da.data(), &m, dx.data(), &step, &dzero, dy3.data(), &step);
  return good && all(y5, 3.0f) && all(dy3, 5.0);
}

}  // namespace

int main(int argc, char** argv) {
  if (!gemms() || !gemvs()) return 1;
  if (argc > 1 && std::strcmp(argv[1], "fork") == 0) {
    const pid_t child = fork();
    if (child == 0) {
      const bool good = gemms();
      _exit(good ? 0 : 1);  // no exit handlers, as the workers of Python's multiprocessing
    }
    int status = -1;
    waitpid(child, &status, 0);
    if (status != 0 || !gemvs()) return 1;
  }
  std::puts("right");
  std::fflush(stdout);
  // Ends without exit handlers.
  if (argc > 1 && std::strcmp(argv[1], "_exit") == 0) _exit(3);
  while (argc > 1 && std::strcmp(argv[1], "forever") == 0) gemms(), usleep(1000);
  if (argc > 1 && std::strcmp(argv[1], "raise") == 0) raise(SIGTERM);
  if (argc > 1 && std::strcmp(argv[1], "kill") == 0) kill(getpid(), SIGINT);
  return 0;
}
