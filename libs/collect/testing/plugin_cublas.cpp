// A library linked with one version of cuBLAS: calls a function of it with the words it is given.

#include "collect/blas/cublas_abi.h"
#include "collect/testing/fake_cublas.h"

using namespace llmprof::collect::blas;

#pragma GCC diagnostic ignored "-Wmissing-declarations"
extern "C" {

#define LLMPROF_BLAS_CUDA(name, signature, types, bits) Word name(LLMPROF_PER_SIGNATURE(PARAMETERS, signature));
#include "collect/blas/functions.def"

int cublasCreate_v2(Word* handle);
int plugin_create(Word* handle) { return cublasCreate_v2(handle); }

void* plugin_lt() { return reinterpret_cast<void*>(&cublasLtMatmul); }

Word plugin_call(Function function, const Word* words) {
  const Word a0 = words[0], a1 = words[1], a2 = words[2], a3 = words[3], a4 = words[4], a5 = words[5], a6 = words[6],
             a7 = words[7], a8 = words[8], a9 = words[9], a10 = words[10], a11 = words[11], a12 = words[12],
             a13 = words[13], a14 = words[14], a15 = words[15], a16 = words[16], a17 = words[17], a18 = words[18],
             a19 = words[19], a20 = words[20], a21 = words[21], a22 = words[22];
  switch (function) {
#define LLMPROF_BLAS_CUDA(name, signature, types, bits) \
  case k_##name:                                        \
    return name(LLMPROF_PER_SIGNATURE(WORDS, signature));
#include "collect/blas/functions.def"
    default:
      return -1;
  }
}
}
