// A program under test that calls every hooked function of (fake) cuBLAS libraries and checks that each argument and
// the answer arrive unchanged. `client_cublas SCENARIO PLUGIN LIBCUBLAS LIBCUBLASLT [the same three again]`.

#include <dlfcn.h>

#include <csetjmp>
#include <cstdio>
#include <cstring>
#include <stdexcept>

#include "collect/blas/cublas_abi.h"
#include "collect/testing/fake_cublas.h"

using namespace llmprof::collect::blas;

namespace {

struct Row {
  const char* name;
  const Signature* signature;
  Function function;
  int bits;
};
constexpr Row kRows[] = {
#define LLMPROF_BLAS_CUDA(name, signature, types, bits) {#name, &k##signature, k_##name, bits},
#include "collect/blas/functions.def"
};

constexpr Word kJunk = Word{0x5a5a5a} << 32;  // in the upper half of a word that means 32 bits
constexpr Word kBig = Word{1} << 33;          // that 32 bits do not hold

// Memory that calls point to.
constexpr std::int32_t kTransposes[2] = {1, 0};
constexpr std::int32_t kSmall[3][2] = {{30, 31}, {40, 41}, {50, 51}};
constexpr std::int64_t kLarge[3][2] = {{30, 31}, {40, 41}, {50, 51}};
constexpr std::int32_t kSizes[2] = {6, 7};
constexpr std::int64_t kSizes64[2] = {6, 7};
const FakeLayout kLayoutA{28, 0, 64, 32, 4, {}}, kLayoutB{28, 0, 64, 48, 4, {}}, kLayoutD{14, 0, 32, 48, 4, {}};
const FakeDescriptor kDescriptor{68, 1, 0, 36, &kSmall, &kLarge, 0, 0};
const FakeAlgorithm kAlgorithm{66, 23, 35, 1, 3, {}};  // numbers of cublas_numbers.def: 128x256, 64xauto, 2x1

template <class T>
Word address(const T* at) {
  return reinterpret_cast<Word>(at);
}

void put_lt(Word* words) {
  words[kLtDescriptor] = address(&kDescriptor);
  words[kLtLayoutA] = address(&kLayoutA);
  words[kLtLayoutB] = address(&kLayoutB);
  words[kLtLayoutD] = address(&kLayoutD);
  words[kLtAlgorithm] = address(&kAlgorithm);
}

void put_groups(const Row& row, Word* words) {
  const Signature& at = *row.signature;
  const bool small = row.bits == 32;
  words[at.trans_a] = words[at.trans_b] = address(kTransposes);
  words[at.m] = small ? address(kSmall[0]) : address(kLarge[0]);
  words[at.n] = small ? address(kSmall[1]) : address(kLarge[1]);
  words[at.k] = small ? address(kSmall[2]) : address(kLarge[2]);
  words[at.groups] = small ? kJunk + 2 : 2;
  words[at.group_sizes] = small ? address(kSizes) : address(kSizes64);
}

// Sizes: m 30, n 40, k 50 (and 2^33 more where they fit), batch 5; A transposed; bfloat16 times bfloat16 to float32.
void make_words(const Row& row, Word (&words)[23]) {
  const Signature& at = *row.signature;
  for (int i = 0; i < 23; ++i) words[i] = (Word{0x7000} + i) << 40 | (1000 + i);
  if (at.type_a != 0) words[at.type_a] = words[at.type_b] = kJunk + kBrain16, words[at.type_c] = kJunk + kReal32;
  if (at.compute != 0) words[at.compute] = kJunk + kCompute32;
  if (row.function == k_cublasLtMatmul) return put_lt(words);
  if (at.groups != 0) return put_groups(row, words);
  const Word more = row.bits == 32 ? kJunk : kBig;
  words[at.trans_a] = kJunk + 1;
  if (at.trans_b != 0) words[at.trans_b] = kJunk;
  words[at.m] = more + 30;
  words[at.n] = more + 40;
  if (at.k != 0) words[at.k] = more + 50;
  if (at.batch != 0) words[at.batch] = row.bits == 32 ? kJunk + 5 : 5;
}

using PluginCall = Word (*)(Function, const Word*);

struct Set {
  PluginCall call;
  void* lt_function;  // as the plugin sees it
  void *cublas, *lt;
  FakeState *cublas_state, *lt_state;
  FakeState* state_of(const Row& row) const { return row.function == k_cublasLtMatmul ? lt_state : cublas_state; }
  void* library_of(const Row& row) const { return row.function == k_cublasLtMatmul ? lt : cublas; }
};

Set load(char** paths) {
  Set set{};
  void* plugin = dlopen(paths[0], RTLD_NOW | RTLD_LOCAL);
  set.cublas = dlopen(paths[1], RTLD_NOW | RTLD_LOCAL);
  set.lt = dlopen(paths[2], RTLD_NOW | RTLD_LOCAL);
  if (plugin == nullptr || set.cublas == nullptr || set.lt == nullptr) std::fprintf(stderr, "%s\n", dlerror());
  set.call = reinterpret_cast<PluginCall>(dlsym(plugin, "plugin_call"));
  set.lt_function = reinterpret_cast<void* (*)()>(dlsym(plugin, "plugin_lt"))();
  set.cublas_state = static_cast<FakeState*>(dlsym(set.cublas, "fake_state"));
  set.lt_state = static_cast<FakeState*>(dlsym(set.lt, "fake_state"));
  return set;
}

bool arrived(const Set& set, const Row& row, const Word (&words)[23], Word answer) {
  FakeState* state = set.state_of(row);
  const int count = row.signature->arguments;
  const bool good = state->function == row.function && state->count == count && answer == state->status &&
                    std::memcmp(state->words, words, sizeof(Word) * static_cast<std::size_t>(count)) == 0;
  if (!good) std::printf("%s of version %d: not as sent\n", row.name, state->version);
  state->function = kFunctions;
  return good;
}

bool call_once(const Set& set, const Row& row, Word status) {
  Word words[23];
  make_words(row, words);
  set.state_of(row)->status = status;
  return arrived(set, row, words, set.call(row.function, words));
}

// Every function, then once more each with an error that must be passed on.
int linked(const Set* sets, int count) {
  bool good = true;
  for (int i = 0; i < count; ++i) {
    for (const Row& row : kRows) good = call_once(sets[i], row, 0) && good;
    for (const Row& row : kRows) good = call_once(sets[i], row, kJunk + 7) && good;
  }
  return good ? 0 : 1;
}

using Lt = Word (*)(Word, Word, Word, Word, Word, Word, Word, Word, Word, Word, Word, Word, Word, Word, Word, Word);
using Gemm = Word (*)(Word, Word, Word, Word, Word, Word, Word, Word, Word, Word, Word, Word, Word, Word);

// One function of each library, asked by name; each set must reach its own.
int by_handle(const Set* sets, int count) {
  bool good = true;
  for (int i = 0; i < count; ++i) {
    for (const Row& row : kRows) {
      const bool lt = row.function == k_cublasLtMatmul;
      if (!lt && row.function != k_cublasHgemm) continue;
      Word w[23];
      make_words(row, w);
      sets[i].state_of(row)->status = 0;
      void* function = dlsym(sets[i].library_of(row), row.name);
      const Word answer = lt ? reinterpret_cast<Lt>(function)(w[0], w[1], w[2], w[3], w[4], w[5], w[6], w[7], w[8],
                                                              w[9], w[10], w[11], w[12], w[13], w[14], w[15])
                             : reinterpret_cast<Gemm>(function)(w[0], w[1], w[2], w[3], w[4], w[5], w[6], w[7], w[8],
                                                                w[9], w[10], w[11], w[12], w[13]);
      good = arrived(sets[i], row, w, answer) && good;
    }
    // What is no function of ours comes back as it is, and so does nothing.
    good = good && dlsym(sets[i].lt, "cublasLtMatrixLayoutGetAttribute") != nullptr;
    good = good && dlsym(sets[i].lt, "cublasNoSuchFunction") == nullptr && dlerror() != nullptr;
  }
  return good ? 0 : 1;
}

constexpr Row kGemmRow{"cublasGemmEx", &kGemmEx, k_cublasGemmEx, 32};
constexpr Row kLtRow{"cublasLtMatmul", &kLtMatmul, k_cublasLtMatmul, 64};
std::jmp_buf back;

int nested(const Set* sets, int) {
  Word words[23], lt_words[23];
  make_words(kGemmRow, words);
  make_words(kLtRow, lt_words);
  sets->cublas_state->lt = sets->lt_function;
  sets->cublas_state->lt_words = lt_words;
  sets->cublas_state->status = sets->lt_state->status = 0;
  return sets->call(k_cublasGemmEx, words) == 0 && sets->lt_state->count == 16 ? 0 : 1;
}

// Calls left by an exception and by longjmp, then one that returns, in single precision with tf32 allowed.
int leave(const Set* sets, int) {
  volatile int left = 0;
  Word words[23];
  make_words(kGemmRow, words);
  sets->cublas_state->callback = [] { throw std::runtime_error("from inside"); };
  try {
    sets->call(k_cublasGemmEx, words);
  } catch (const std::runtime_error&) {
    left = left + 1;
  }
  sets->cublas_state->callback = [] { std::longjmp(back, 1); };
  if (setjmp(back) == 0) {
    sets->call(k_cublasGemmEx, words);
  } else {
    left = left + 1;
  }
  sets->cublas_state->callback = nullptr;
  sets->cublas_state->math_mode = 3;
  words[kGemmEx.type_a] = words[kGemmEx.type_b] = kReal32;
  sets->cublas_state->status = 0;
  sets->call(k_cublasGemmEx, words);
  return left == 2 ? 0 : 1;
}

// The same layouts many times: they are asked about once, the descriptor each time.
int repeat(const Set* sets, int) {
  for (int i = 0; i < 100; ++i) call_once(*sets, kLtRow, 0);
  std::printf("asked %d\n", sets->lt_state->asked);
  return 0;
}

// Two copies of one version, the second of which the plugin was bound to: it was linked with neither, and the first is
// not in the loader's scope. What the plugin makes with one copy must not enter the other.
int copies(char** paths) {
  void* first = dlopen(paths[1], RTLD_NOW | RTLD_LOCAL);
  void* second = dlopen(paths[2], RTLD_NOW | RTLD_GLOBAL);
  void* plugin = dlopen(paths[0], RTLD_LAZY | RTLD_LOCAL);
  if (first == nullptr || second == nullptr || plugin == nullptr || first == second) {
    std::fprintf(stderr, "%s\n", dlerror());
    return 1;
  }
  auto* unused = static_cast<FakeState*>(dlsym(first, "fake_state"));
  auto* used = static_cast<FakeState*>(dlsym(second, "fake_state"));
  Word words[23];
  make_words(kGemmRow, words);
  const auto create = reinterpret_cast<int (*)(Word*)>(dlsym(plugin, "plugin_create"));
  if (create(&words[0]) != 0 || words[0] != address(used)) return 2;
  reinterpret_cast<PluginCall>(dlsym(plugin, "plugin_call"))(k_cublasGemmEx, words);
  std::printf("%s\n", used->function == k_cublasGemmEx && unused->function == kFunctions ? "right" : "the other copy");
  return 0;
}

struct Scenario {
  const char* name;
  int (*run)(const Set* sets, int count);
};
constexpr Scenario kScenarios[] = {
    {"linked", linked}, {"by_handle", by_handle}, {"nested", nested}, {"leave", leave}, {"repeat", repeat}};

}  // namespace

int main(int argc, char** argv) {
  if (argc == 5 && std::strcmp(argv[1], "copies") == 0) return copies(argv + 2);
  Set sets[2];
  const int count = (argc - 2) / 3;
  for (int i = 0; i < count && i < 2; ++i) sets[i] = load(argv + 2 + 3 * i);
  for (const Scenario& scenario : kScenarios) {
    if (argc > 4 && std::strcmp(argv[1], scenario.name) == 0) return scenario.run(sets, count);
  }
  return 99;
}
