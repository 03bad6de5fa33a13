#pragma once
// What kernels and GPU matrix products of one log were launched with, as its definitions say. Numbers belong to one
// log; what they stand for is kept as long as the process is read, each once.

#include <cstdint>
#include <deque>
#include <string>
#include <unordered_map>

#include "record/log_names.h"
#include "trace/rows.h"
#include "wire/format.h"

namespace llmprof::record {

// The columns of a kernel that its shape gives.
struct KernelShape {
  trace::Name name;
  std::int32_t grid_x, grid_y, grid_z;
  std::int32_t block_x, block_y, block_z;
  std::int32_t registers;
  std::int32_t shared_bytes;
};

// The columns of a product that its shape gives.
struct GemmShape {
  trace::Name function, library, algorithm, epilogue, scaling;
  trace::Name type_a, type_b, type_c, compute_type;
  wire::Layout layout;
  wire::Transpose transpose_a, transpose_b;
};

// Definitions of one kind: by number in the log, and each content once.
template <class Shape>
class ShapeTable {
 public:
  static constexpr std::size_t kMost = 1u << 18;  // a collector has half of it

  void define(wire::DefinitionId id, const Shape& shape) {
    const std::string key(reinterpret_cast<const char*>(&shape), sizeof shape);
    auto found = known_.find(key);
    if (found == known_.end()) {
      if (shapes_.size() == kMost) return;
      shapes_.push_back(shape);
      found = known_.emplace(key, &shapes_.back()).first;
    }
    if (numbers_.size() < kMost) numbers_[id] = found->second;
  }
  const Shape* find(wire::DefinitionId id) const {
    const auto found = numbers_.find(id);
    return found == numbers_.end() ? nullptr : found->second;
  }
  void next_log() { numbers_.clear(); }

 private:
  std::deque<Shape> shapes_;  // a deque: pointers into it stay valid
  std::unordered_map<std::string, const Shape*> known_;
  std::unordered_map<wire::DefinitionId, const Shape*> numbers_;
};

KernelShape to_shape(const wire::KernelShapeRecord& record, LogNames& names);
GemmShape to_shape(const wire::GemmShapeRecord& record, LogNames& names);

}  // namespace llmprof::record
