#include "record/cuda_shapes.h"

#include <algorithm>
#include <cstring>

namespace llmprof::record {
namespace {

std::int32_t number(std::uint64_t value) {
  return static_cast<std::int32_t>(std::min<std::uint64_t>(value, INT32_MAX));
}

// All bytes of a shape count when it is compared.
template <class Shape>
Shape blank() {
  Shape shape;
  std::memset(static_cast<void*>(&shape), 0, sizeof shape);
  return shape;
}

}  // namespace

KernelShape to_shape(const wire::KernelShapeRecord& record, LogNames& names) {
  auto shape = blank<KernelShape>();
  shape.name = names.gpu_kernel_name(record.name);
  shape.grid_x = number(record.grid_x);
  shape.grid_y = number(record.grid_y);
  shape.grid_z = number(record.grid_z);
  shape.block_x = record.block_x;
  shape.block_y = record.block_y;
  shape.block_z = record.block_z;
  shape.registers = record.registers;
  shape.shared_bytes = number(std::uint64_t{record.static_shared_bytes} + record.dynamic_shared_bytes);
  return shape;
}

GemmShape to_shape(const wire::GemmShapeRecord& record, LogNames& names) {
  auto shape = blank<GemmShape>();
  shape.function = names.name(record.function);
  shape.library = names.name(record.library);
  shape.algorithm = names.name(record.algorithm);
  shape.epilogue = names.name(record.epilogue);
  shape.scaling = names.name(record.scaling);
  shape.type_a = names.name(record.type_a);
  shape.type_b = names.name(record.type_b);
  shape.type_c = names.name(record.type_c);
  shape.compute_type = names.name(record.compute_type);
  shape.layout = record.layout;
  shape.transpose_a = record.trans_a;
  shape.transpose_b = record.trans_b;
  return shape;
}

}  // namespace llmprof::record
