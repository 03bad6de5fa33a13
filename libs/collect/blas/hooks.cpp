// The hooked BLAS functions. Each call is passed on unchanged to the function it would have reached without us, and
// becomes one GemmRecord. A hook needs little stack and keeps errno.

#include "collect/blas/call.h"

namespace llmprof::collect::blas {
namespace {

using wire::ElementType;
using wire::GemmRecord;
using wire::Layout;
using wire::Transpose;

template <int Bits>
std::int64_t number(Word value) {
  return Bits == 32 ? static_cast<std::int32_t>(value) : value;
}
template <int Bits>
std::int64_t number(const void* value) {
  std::int64_t result = 0;
  __builtin_memcpy(&result, value, Bits / 8);
  return number<Bits>(result);
}

Transpose transpose_of(Word value) {
  switch (static_cast<std::int32_t>(value)) {  // CBLAS_TRANSPOSE
    case 112:
      return Transpose::kYes;
    case 113:
      return Transpose::kConjugate;
    default:
      return Transpose::kNo;
  }
}
Transpose transpose_of(const char* value) {
  switch (*value) {
    case 't':
    case 'T':
      return Transpose::kYes;
    case 'c':
    case 'C':
      return Transpose::kConjugate;
    default:
      return Transpose::kNo;
  }
}
Layout cblas_layout(Word value) {
  return static_cast<std::int32_t>(value) == 101 ? Layout::kRowMajor : Layout::kColumnMajor;  // CBLAS_LAYOUT
}
constexpr ElementType type_of(float) { return ElementType::kFloat32; }
constexpr ElementType type_of(double) { return ElementType::kFloat64; }

GemmRecord gemm(ElementType type, Layout layout, Transpose a, Transpose b, std::int64_t m, std::int64_t n,
                std::int64_t k) {
  return {0, 0, m, n, k, 1, 0, 0, type, layout, a, b};
}
// The matrix is m x n as stored; the record has the shape of op(A).
GemmRecord gemv(ElementType type, Layout layout, Transpose a, std::int64_t m, std::int64_t n) {
  const bool flipped = a != Transpose::kNo;
  return gemm(type, layout, a, Transpose::kNo, flipped ? n : m, 1, flipped ? m : n);
}

// ---- where there is no library ------------------------------------------------------------------------------------
//
// A program that has seen our name in a weak reference before that could be cleared (blas/weak_references.cpp) believes
// that there is a BLAS. It is given what it asks for, as slow as that may be.

template <class Real>
struct Operand {
  const Real* data;
  std::int64_t stride;
  bool by_rows, transposed;
  Real at(std::int64_t row, std::int64_t column) const {
    const bool along = by_rows != transposed;
    return data[along ? row * stride + column : column * stride + row];
  }
};

template <class Real>
struct Vector {
  Real* data;
  std::int64_t step;
  Real& at(std::int64_t i, std::int64_t length) const { return data[(step < 0 ? i - length + 1 : i) * step]; }
};

template <class Real>
Vector<Real> vector(Real* data, std::int64_t step) {
  return {data, step};
}

template <class Real>
Real scalar(Real value) {
  return value;
}
template <class Real>
Real scalar(const Real* value) {
  return *value;
}

template <class Real>
Real blend(Real alpha, Real sum, Real beta, Real before) {
  return alpha * sum + (beta == 0 ? Real{0} : beta * before);  // what was there need not be a number
}

template <class Real>
void multiply(const GemmRecord& shape, Real alpha, const Operand<Real>& a, const Operand<Real>& b, Real beta, Real* c,
              std::int64_t stride) {
  for (std::int64_t i = 0; i < shape.m; ++i) {
    for (std::int64_t j = 0; j < shape.n; ++j) {
      Real sum = 0;
      for (std::int64_t k = 0; k < shape.k; ++k) sum += a.at(i, k) * b.at(k, j);
      Real& out = c[shape.layout == Layout::kRowMajor ? i * stride + j : j * stride + i];
      out = blend(alpha, sum, beta, out);
    }
  }
}

template <class Real>
void multiply(const GemmRecord& shape, Real alpha, const Operand<Real>& a, const Vector<const Real>& x, Real beta,
              const Vector<Real>& y) {
  for (std::int64_t i = 0; i < shape.m; ++i) {
    Real sum = 0;
    for (std::int64_t k = 0; k < shape.k; ++k) sum += a.at(i, k) * x.at(k, shape.k);
    y.at(i, shape.m) = blend(alpha, sum, beta, y.at(i, shape.m));
  }
}

template <class Real>
Operand<Real> operand(const GemmRecord& shape, const Real* data, std::int64_t stride, Transpose transpose) {
  return {data, stride, shape.layout == Layout::kRowMajor, transpose != Transpose::kNo};
}

// ---- all hooks ----------------------------------------------------------------------------------------------------

template <class Describe, class Forward, class Compute>
[[gnu::always_inline]] inline void pass_on(const Call& call, Describe describe, Forward forward, Compute compute) {
  Site* site = const_cast<Site*>(find_site(call.function, call.return_address));
  const llmprof_collector_table* table = is_nested(*site, call.frame) ? nullptr : collector();
  if (table == nullptr || site->target == nullptr) [[unlikely]] {
    if (site->target != nullptr) return forward(site->target);
    if (!refers_weakly(call.function, call.return_address)) end_unresolved(call.function);
    return compute(describe());
  }
  before_recording(table, site);
  GemmRecord record = describe();
  record.function = site->function_id.load(std::memory_order_relaxed);
  record.library = site->library_id.load(std::memory_order_relaxed);
  outer_frame = call.frame;
  table->gemm_begin(&record);
  forward(site->target);
  table->gemm_end(&record);
  outer_frame = 0;
}

}  // namespace
}  // namespace llmprof::collect::blas

using namespace llmprof::collect::blas;  // the hooks themselves stand outside: their names are C's

// A hook: how the function is declared, what of a call is recorded, how it is passed on, and what it computes where
// nobody else does.
#define LLMPROF_HOOK(symbol, name, parameters, arguments, described, computed)        \
  extern "C" void symbol parameters {                                                 \
    pass_on(                                                                          \
        LLMPROF_CALL(name), [&] { return described; },                                \
        [&](void* target) { reinterpret_cast<decltype(&symbol)>(target) arguments; }, \
        [&](const GemmRecord& shape) { computed; });                                  \
  }
#define LLMPROF_GEMM(symbol, name, real, bits, layout, parameters, arguments)                                      \
  LLMPROF_HOOK(symbol, name, parameters, arguments,                                                                \
               gemm(type_of(real{}), layout, transpose_of(ta), transpose_of(tb), number<bits>(m), number<bits>(n), \
                    number<bits>(k)),                                                                              \
               multiply(shape, scalar(alpha), operand(shape, a, number<bits>(lda), shape.trans_a),                 \
                        operand(shape, b, number<bits>(ldb), shape.trans_b), scalar(beta), c, number<bits>(ldc)))
#define LLMPROF_GEMV(symbol, name, real, bits, layout, parameters, arguments)                      \
  LLMPROF_HOOK(symbol, name, parameters, arguments,                                                \
               gemv(type_of(real{}), layout, transpose_of(ta), number<bits>(m), number<bits>(n)),  \
               multiply(shape, scalar(alpha), operand(shape, a, number<bits>(lda), shape.trans_a), \
                        vector(x, number<bits>(incx)), scalar(beta), vector(y, number<bits>(incy))))

// C hands over values, Fortran addresses and, behind everything else, the lengths of its texts.
#define LLMPROF_CblasGemm(symbol, name, real, bits)                                                         \
  LLMPROF_GEMM(symbol, name, real, bits, cblas_layout(layout),                                              \
               (Word layout, Word ta, Word tb, Word m, Word n, Word k, real alpha, const real* a, Word lda, \
                const real* b, Word ldb, real beta, real* c, Word ldc),                                     \
               (layout, ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc))
#define LLMPROF_CblasGemv(symbol, name, real, bits)                                                                  \
  LLMPROF_GEMV(symbol, name, real, bits, cblas_layout(layout),                                                       \
               (Word layout, Word ta, Word m, Word n, real alpha, const real* a, Word lda, const real* x, Word incx, \
                real beta, real* y, Word incy),                                                                      \
               (layout, ta, m, n, alpha, a, lda, x, incx, beta, y, incy))
#define LLMPROF_FortranGemm(symbol, name, real, bits)                                                           \
  LLMPROF_GEMM(symbol, name, real, bits, Layout::kColumnMajor,                                                  \
               (const char* ta, const char* tb, const void* m, const void* n, const void* k, const real* alpha, \
                const real* a, const void* lda, const real* b, const void* ldb, const real* beta, real* c,      \
                const void* ldc, Word length_a, Word length_b),                                                 \
               (ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc, length_a, length_b))
#define LLMPROF_FortranGemv(symbol, name, real, bits)                                                            \
  LLMPROF_GEMV(symbol, name, real, bits, Layout::kColumnMajor,                                                   \
               (const char* ta, const void* m, const void* n, const real* alpha, const real* a, const void* lda, \
                const real* x, const void* incx, const real* beta, real* y, const void* incy, Word length_a),    \
               (ta, m, n, alpha, a, lda, x, incx, beta, y, incy, length_a))

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmissing-declarations"
#pragma GCC visibility push(default)
#define LLMPROF_BLAS_FUNCTION(name, abi, real, bits) LLMPROF_##abi(name, name, real, bits)
#include "collect/blas/functions.def"
#pragma GCC visibility pop

#if defined(__x86_64__)

// The guarded names: the exported symbol is a few instructions that keep every argument register, ask where the call
// should go, and jump there. The hook proper has a hidden name.
#define LLMPROF_BLAS_GUARDED(name, abi, real, bits) LLMPROF_##abi(llmprof_hook_##name, name, real, bits)
#include "collect/blas/functions.def"

namespace {

void* hook_of(Function function) {
  switch (function) {
#define LLMPROF_BLAS_GUARDED(name, abi, real, bits) \
  case k_##name:                                    \
    return reinterpret_cast<void*>(&llmprof_hook_##name);
#include "collect/blas/functions.def"
    default:
      return nullptr;
  }
}

}  // namespace

extern "C" [[gnu::used]] void* llmprof_guarded_target(std::uint32_t function, std::uintptr_t return_address) {
  const Site* site = find_site(static_cast<Function>(function), return_address);
  return site->target == nullptr || site->is_mkl ? hook_of(static_cast<Function>(function)) : site->target;
}
#pragma GCC diagnostic pop

// 200 bytes of frame and the return address keep the stack on a multiple of 16.
#define LLMPROF_BLAS_GUARDED(name, abi, real, bits)                                                    \
  extern "C" [[gnu::naked, gnu::visibility("default")]] void name();                                   \
  extern "C" [[gnu::naked, gnu::visibility("default")]] void name() {                                  \
    asm volatile(                                                                                      \
        "subq $200, %%rsp\n"                                                                           \
        ".cfi_adjust_cfa_offset 200\n"                                                                 \
        "movq %%rdi, (%%rsp)\n movq %%rsi, 8(%%rsp)\n movq %%rdx, 16(%%rsp)\n movq %%rcx, 24(%%rsp)\n" \
        "movq %%r8, 32(%%rsp)\n movq %%r9, 40(%%rsp)\n movq %%rax, 48(%%rsp)\n"                        \
        "movups %%xmm0, 64(%%rsp)\n movups %%xmm1, 80(%%rsp)\n movups %%xmm2, 96(%%rsp)\n"             \
        "movups %%xmm3, 112(%%rsp)\n movups %%xmm4, 128(%%rsp)\n movups %%xmm5, 144(%%rsp)\n"          \
        "movups %%xmm6, 160(%%rsp)\n movups %%xmm7, 176(%%rsp)\n"                                      \
        "movl %0, %%edi\n movq 200(%%rsp), %%rsi\n"                                                    \
        "call llmprof_guarded_target\n"                                                                \
        "movq %%rax, %%r11\n"                                                                          \
        "movq (%%rsp), %%rdi\n movq 8(%%rsp), %%rsi\n movq 16(%%rsp), %%rdx\n movq 24(%%rsp), %%rcx\n" \
        "movq 32(%%rsp), %%r8\n movq 40(%%rsp), %%r9\n movq 48(%%rsp), %%rax\n"                        \
        "movups 64(%%rsp), %%xmm0\n movups 80(%%rsp), %%xmm1\n movups 96(%%rsp), %%xmm2\n"             \
        "movups 112(%%rsp), %%xmm3\n movups 128(%%rsp), %%xmm4\n movups 144(%%rsp), %%xmm5\n"          \
        "movups 160(%%rsp), %%xmm6\n movups 176(%%rsp), %%xmm7\n"                                      \
        "addq $200, %%rsp\n"                                                                           \
        ".cfi_adjust_cfa_offset -200\n"                                                                \
        "jmp *%%r11\n"                                                                                 \
        :                                                                                              \
        : "i"(static_cast<int>(k_##name)));                                                            \
  }
#include "collect/blas/functions.def"

#endif
