#include "collect/blas/cublas_call.h"

#include <string.h>

#include "collect/blas/cublas_names.h"

namespace llmprof::collect::blas {
namespace {

std::int64_t as_number(Word word, int bits) { return bits == 32 ? static_cast<std::int32_t>(word) : word; }

std::int64_t element(Word array, std::int64_t index, int bits) {
  std::int64_t value = 0;
  const std::int64_t bytes = bits / 8;
  memcpy(&value, reinterpret_cast<const unsigned char*>(array) + index * bytes, static_cast<std::size_t>(bytes));
  return as_number(value, bits);
}

// An argument of the call: itself, or what it holds for a group.
std::int64_t argument(const GpuCall& call, std::uint8_t position, std::int64_t group, int bits) {
  const Word word = call.words[position];
  return call.signature->groups != 0 ? element(word, group, bits) : as_number(word, bits);
}

// The types' numbers and the transposes have 32 bits in all functions; group arrays hold no types.
std::int32_t number_at(const GpuCall& call, std::uint8_t position, std::int32_t otherwise) {
  return position != 0 ? static_cast<std::int32_t>(call.words[position]) : otherwise;
}

// Single precision may be computed in less: the handle says.
std::int32_t with_math_mode(const GpuCall& call, const GpuShape& shape) {
  using GetMathMode = int (*)(Word handle, std::int32_t * mode);
  const auto ask = reinterpret_cast<GetMathMode>(call.site->helpers[0]);
  const bool single = shape.type_a == kReal32 || shape.type_a == kComplex32;
  std::int32_t mode = 0;
  if (!single || shape.compute != kCompute32 || ask == nullptr || ask(call.words[0], &mode) != 0) return shape.compute;
  return (mode & kMathModeMask) == kMathModeTf32 ? kComputeTf32 : shape.compute;
}

GpuShape shape_of(const GpuCall& call) {
  const Signature& at = *call.signature;
  GpuShape shape;
  shape.type_a = number_at(call, at.type_a, call.types.a);
  shape.type_b = number_at(call, at.type_b, call.types.a);
  shape.type_c = number_at(call, at.type_c, call.types.c);
  shape.compute = number_at(call, at.compute, call.types.compute);
  shape.compute = with_math_mode(call, shape);
  return shape;
}

void record_one(const llmprof_collector_table* table, const GpuCall& call, GpuShape shape, std::int64_t group) {
  const Signature& at = *call.signature;
  const std::int64_t m = argument(call, at.m, group, call.bits), n = argument(call, at.n, group, call.bits);
  shape.trans_a = cublas_transpose(argument(call, at.trans_a, group, 32));
  GpuSize size{m, n, 0, 1};
  if (at.trans_b != 0) {
    shape.trans_b = cublas_transpose(argument(call, at.trans_b, group, 32));
    size.k = argument(call, at.k, group, call.bits);
  } else {  // the matrix is m x n as stored; the record has the shape of op(A)
    const bool flipped = shape.trans_a != wire::Transpose::kNo;
    size = {flipped ? n : m, 1, flipped ? m : n, 1};
  }
  if (at.batch != 0) size.batch = as_number(call.words[at.batch], call.bits);
  if (at.group_sizes != 0) size.batch = element(call.words[at.group_sizes], group, call.bits);
  record_gemm(table, call, shape, size);
}

}  // namespace

wire::Transpose cublas_transpose(std::int64_t operation) {
  if (operation == 1) return wire::Transpose::kYes;
  return operation == 2 ? wire::Transpose::kConjugate : wire::Transpose::kNo;
}

void record_gemm(const llmprof_collector_table* table, const GpuCall& call, const GpuShape& shape,
                 const GpuSize& size) {
  wire::Record record = wire::blank(wire::RecordKind::kGemmShape);
  wire::GemmShapeRecord& text = record.gemm_shape;
  text.function = call.site->function_id.load(std::memory_order_relaxed);
  text.library = call.site->library_id.load(std::memory_order_relaxed);
  text.algorithm = shape.algorithm;
  text.epilogue = shape.epilogue;
  text.scaling = shape.scaling;
  text.type_a = type_id(table, shape.type_a);
  text.type_b = type_id(table, shape.type_b);
  text.type_c = type_id(table, shape.type_c);
  text.compute_type = compute_id(table, shape.compute);
  text.layout = shape.layout;
  text.trans_a = shape.trans_a;
  text.trans_b = shape.trans_b;
  const wire::DefinitionId id = table->define(&record);
  record.kind = wire::RecordKind::kGpuGemm;
  const std::int64_t batch = size.batch < 0 ? 0 : size.batch;
  record.gpu_gemm = {
      call.begin_ns, call.end_ns, size.m, size.n, size.k, batch > ~0u ? ~0u : static_cast<std::uint32_t>(batch), id};
  table->record(&record);
}

void record_cublas(const llmprof_collector_table* table, const GpuCall& call) {
  const GpuShape shape = shape_of(call);
  const std::uint8_t groups = call.signature->groups;
  const std::int64_t count = groups != 0 ? as_number(call.words[groups], call.bits) : 1;
  for (std::int64_t group = 0; group < count; ++group) record_one(table, call, shape, group);
}

}  // namespace llmprof::collect::blas
