// See fake_cublas.h. Which functions are visible is up to the version script of the library.

#include "collect/testing/fake_cublas.h"

#include <cstring>

#include "collect/blas/cublas_abi.h"

using namespace llmprof::collect::blas;

extern "C" {
FakeState fake_state = {LLMPROF_FAKE_VERSION, kFunctions, 0, {}, 0, 0, 0, nullptr, nullptr, nullptr};
}

namespace {

// As in the real library: cuBLAS leaves the work to cuBLASLt.
void leave_to_lt() {
  using Lt = Word (*)(Word, Word, Word, Word, Word, Word, Word, Word, Word, Word, Word, Word, Word, Word, Word, Word);
  const Word* w = fake_state.lt_words;
  const auto call = reinterpret_cast<Lt>(fake_state.lt);
  fake_state.status |=
      call(w[0], w[1], w[2], w[3], w[4], w[5], w[6], w[7], w[8], w[9], w[10], w[11], w[12], w[13], w[14], w[15]);
}

template <std::size_t N>
Word note(Function function, const Word (&words)[N]) {
  fake_state.function = function;
  fake_state.count = N;
  std::memcpy(fake_state.words, words, sizeof(words));
  if (fake_state.callback != nullptr) fake_state.callback();
  if (fake_state.lt != nullptr) leave_to_lt();
  return fake_state.status;
}

template <class T>
int put(T value, void* out, std::size_t size, std::size_t* written) {
  ++fake_state.asked;
  if (size != sizeof(value)) return 7;
  std::memcpy(out, &value, sizeof(value));
  *written = sizeof(value);
  return 0;
}

}  // namespace

#pragma GCC diagnostic ignored "-Wmissing-declarations"
extern "C" {

#define LLMPROF_BLAS_CUDA(name, signature, types, bits)             \
  Word name(LLMPROF_PER_SIGNATURE(PARAMETERS, signature)) {         \
    const Word words[] = {LLMPROF_PER_SIGNATURE(WORDS, signature)}; \
    return note(k_##name, words);                                   \
  }
#include "collect/blas/functions.def"

// A handle of one copy of the library is worth nothing to another.
int cublasCreate_v2(Word* handle) {
  *handle = reinterpret_cast<Word>(&fake_state);
  return 0;
}

int cublasGetMathMode(Word, std::int32_t* mode) {
  *mode = fake_state.math_mode;
  return 0;
}

int cublasLtMatrixLayoutGetAttribute(const FakeLayout* layout, std::int32_t attribute, void* out, std::size_t size,
                                     std::size_t* written) {
  switch (attribute) {
    case kLtType:
      return put(layout->type, out, size, written);
    case kLtOrder:
      return put(layout->order, out, size, written);
    case kLtRows:
      return put(layout->rows, out, size, written);
    case kLtColumns:
      return put(layout->columns, out, size, written);
    case kLtBatch:
      return put(layout->batch, out, size, written);
    default:
      return 7;
  }
}

int cublasLtMatmulDescGetAttribute(const FakeDescriptor* descriptor, std::int32_t attribute, void* out,
                                   std::size_t size, std::size_t* written) {
  switch (attribute) {
    case kLtCompute:
      return put(descriptor->compute, out, size, written);
    case kLtTransA:
      return put(descriptor->trans_a, out, size, written);
    case kLtTransB:
      return put(descriptor->trans_b, out, size, written);
    case kLtEpilogue:
      return put(descriptor->epilogue, out, size, written);
    case kLtScalePointerA:
      return put(descriptor->scale_a, out, size, written);
    case kLtScalePointerB:
      return put(descriptor->scale_b, out, size, written);
    case kLtScaleModeA:
      return put(descriptor->mode_a, out, size, written);
    case kLtScaleModeB:
      return put(descriptor->mode_b, out, size, written);
    default:
      return 7;
  }
}

int cublasLtMatmulAlgoConfigGetAttribute(const FakeAlgorithm* algorithm, std::int32_t attribute, void* out,
                                         std::size_t size, std::size_t* written) {
  switch (attribute) {
    case kLtAlgorithmId:
      return put(algorithm->number, out, size, written);
    case kLtTile:
      return put(algorithm->tile, out, size, written);
    case kLtStages:
      return put(algorithm->stages, out, size, written);
    case kLtSplitK:
      return put(algorithm->split_k, out, size, written);
    case kLtCluster:
      return put(algorithm->cluster, out, size, written);
    default:
      return 7;
  }
}
}
