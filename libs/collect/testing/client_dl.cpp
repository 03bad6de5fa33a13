// A program under test that is linked with no BLAS and loads libraries at run time. `client_dl SCENARIO LIBRARY…`.

#include <dlfcn.h>
#include <pthread.h>
#include <unistd.h>

#include <csetjmp>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <stdexcept>

extern "C" [[gnu::weak]] void cblas_sgemm();

namespace {

template <class F>
F symbol(void* library, const char* name) {
  void* address = dlsym(library, name);
  if (address == nullptr) std::fprintf(stderr, "no %s: %s\n", name, dlerror());
  return reinterpret_cast<F>(address);
}
using Gemm = float (*)(int, int, int);
using Gemm64 = double (*)(std::int64_t, std::int64_t, std::int64_t);
using Plain = double (*)();
using Cblas64 = void (*)(int, int, int, std::int64_t, std::int64_t, std::int64_t, double, const double*, std::int64_t,
                         const double*, std::int64_t, double, double*, std::int64_t);

void* load(const char* path) {
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) std::fprintf(stderr, "%s\n", dlerror());
  return library;
}

// Each plugin has its own BLAS; prints what each answers.
int plugins(int count, char** paths) {
  for (int i = 0; i < count; ++i) {
    void* plugin = load(paths[i]);
    std::printf("%g ", static_cast<double>(symbol<Gemm>(plugin, "plugin_gemm")(2, 3, 4)));
    std::printf("%g ", symbol<Gemm64>(plugin, "plugin_gemm64")(5, 6, std::int64_t{1} << 33));
    std::printf("%g ", symbol<Plain>(plugin, "plugin_plain")());
  }
  std::printf("\n");
  return 0;
}

// A BLAS reached by dlsym on its handle: cannot be seen.
int handle(int, char** paths) {
  void* library = load(paths[0]);
  double value = 0;
  symbol<Cblas64>(library, "cblas_dgemm64_")(101, 111, 111, 1, 1, 1, 1, &value, 1, &value, 1, 0, &value, 1);
  return value != 0 ? 0 : 1;
}

// Asks whether there is a BLAS at all, before one is loaded and after. Prints what it is told.
int asks(int, char** paths) {
  const auto ask = [](void* where) {
    dlerror();
    const bool there = dlsym(where, "cblas_sgemm") != nullptr;
    std::printf("%s%s ", there ? "yes" : "no", (dlerror() != nullptr) == there ? "?" : "");
  };
  void* const program = dlopen(nullptr, RTLD_NOW);
  ask(RTLD_DEFAULT);
  ask(program);
  if (dlopen(paths[0], RTLD_NOW | RTLD_GLOBAL) == nullptr) return 1;
  ask(RTLD_DEFAULT);
  ask(program);
  std::printf("\n");
  return 0;
}

// A library that was closed is a new one when it is opened again: what was written into it is gone.
int reload(int, char** paths) {
  static const auto callback = [] {};
  for (int i = 0; i < 20; ++i) {
    void* plugin = load(paths[0]);
    auto** written = symbol<void (**)()>(plugin, "fake_blas_callback");  // of the library behind it
    if (symbol<Gemm>(plugin, "plugin_gemm")(i, 1, 1) == 0) return 1;
    if (*written != nullptr) return 2;
    *written = callback;
    dlclose(plugin);
  }
  return 0;
}

// Libraries that look the same but for the BLAS behind them, each opened where the last one was.
int replace(int count, char** paths) {
  for (int i = 0; i < 3 * count; ++i) {
    void* plugin = load(paths[i % count]);
    std::printf("%g ", static_cast<double>(symbol<Gemm>(plugin, "plugin_gemm")(2, 3, 4)));
    dlclose(plugin);
  }
  std::printf("\n");
  return 0;
}

// A program and a library that refer weakly to functions of BLAS, without one, and with one for what is loaded later.
int weak(int, char** paths) {
  std::printf("%d ", &cblas_sgemm != nullptr ? 1 : 0);
  void* bare = dlopen(paths[0], RTLD_LAZY | RTLD_LOCAL);
  std::printf("%d ", symbol<int (*)()>(bare, "bare_references")());
  if (symbol<int (*)()>(bare, "bare_early_is_right")() == 0) return 2;
  if (dlopen(paths[1], RTLD_NOW | RTLD_GLOBAL) == nullptr) return 1;
  std::printf("%d ", symbol<int (*)()>(bare, "bare_references")());
  dlclose(bare);
  bare = dlopen(paths[0], RTLD_LAZY | RTLD_LOCAL);
  std::printf("%d ", symbol<int (*)()>(bare, "bare_references")());
  std::printf("%g\n", static_cast<double>(symbol<float (*)()>(bare, "bare_weak_gemm")()));
  return 0;
}

// A function that is nowhere is called.
int unresolved(int, char** paths) {
  void* bare = dlopen(paths[0], RTLD_LAZY | RTLD_LOCAL);
  symbol<void (*)()>(bare, "bare_strong_gemm")();
  std::printf("went on\n");
  return 0;
}

std::jmp_buf back;
void throw_error() { throw std::runtime_error("from inside"); }
void jump() { std::longjmp(back, 1); }

[[gnu::noinline]] void from_below(Gemm gemm, int size) {
  volatile char room[65536];
  room[0] = static_cast<char>(size);
  gemm(size, room[0], size);
  room[1] = room[0];  // a call, not a jump: this frame stays
}

// Calls left by an exception and by longjmp, then some that return.
int leave(int, char** paths) {
  void* plugin = load(paths[0]);
  void* blas = load(paths[1]);
  const Gemm gemm = symbol<Gemm>(plugin, "plugin_gemm");
  auto** callback = symbol<void (**)()>(blas, "fake_blas_callback");
  int left = 0;
  *callback = throw_error;
  try {
    gemm(1, 1, 1);
  } catch (const std::runtime_error&) {
    ++left;
  }
  *callback = jump;
  if (setjmp(back) == 0) {
    gemm(2, 2, 2);
  } else {
    ++left;
  }
  *callback = nullptr;
  gemm(3, 3, 3);
  gemm(4, 4, 4);
  // From deeper in the stack than the call that was left: that one stays behind, and is not around these.
  *callback = jump;
  if (setjmp(back) == 0) gemm(5, 5, 5);
  *callback = nullptr;
  from_below(gemm, 6);
  return left == 2 ? 0 : 1;
}

void* on_small_stack(void* gemm) {
  const float answer = reinterpret_cast<Gemm>(gemm)(8, 8, 8);
  return answer != 0 ? gemm : nullptr;
}

int small_stack(int, char** paths) {
  void* plugin = load(paths[0]);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, 16384);
  pthread_t thread;
  if (pthread_create(&thread, &attributes, on_small_stack, symbol<void*>(plugin, "plugin_gemm")) != 0) return 1;
  void* result = nullptr;
  pthread_join(thread, &result);
  return result != nullptr ? 0 : 1;
}

struct Scenario {
  const char* name;
  int (*run)(int count, char** paths);
};
constexpr Scenario kScenarios[] = {{"plugins", plugins}, {"handle", handle},         {"asks", asks},
                                   {"reload", reload},   {"replace", replace},       {"leave", leave},
                                   {"weak", weak},       {"unresolved", unresolved}, {"small_stack", small_stack}};

}  // namespace

int main(int argc, char** argv) {
  for (const Scenario& scenario : kScenarios) {
    if (argc > 2 && std::strcmp(argv[1], scenario.name) == 0) return scenario.run(argc - 2, argv + 2);
  }
  return 99;
}
