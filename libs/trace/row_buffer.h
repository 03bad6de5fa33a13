#pragma once
// Rows of one table on their way to a file. Adding is a copy of the row; memory grows by blocks, never moves.

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "trace/schema.h"

namespace llmprof::trace {

class RowBuffer {
 public:
  using Blocks = std::vector<std::unique_ptr<std::byte[]>>;

  explicit RowBuffer(const Table& table) : table_(&table) {}
  const Table& table() const { return *table_; }
  std::size_t rows() const { return rows_; }
  std::size_t bytes() const { return rows_ * table_->row_bytes; }

  void add(const void* row) {
    if (rows_ % kBlockRows == 0) {
      blocks_.push_back(std::make_unique_for_overwrite<std::byte[]>(kBlockRows * table_->row_bytes));
      next_ = blocks_.back().get();
    }
    std::memcpy(next_, row, table_->row_bytes);
    next_ += table_->row_bytes;
    ++rows_;
  }

  void add_many(const std::byte* rows, std::size_t count) {
    while (count > 0) {
      add(rows);
      const std::size_t more =
          std::min(count, kBlockRows - (rows_ - 1) % kBlockRows) - 1;  // what this block still takes
      std::memcpy(next_, rows + table_->row_bytes, more * table_->row_bytes);
      next_ += more * table_->row_bytes;
      rows_ += more;
      rows += (more + 1) * table_->row_bytes;
      count -= more + 1;
    }
  }

  std::vector<const std::byte*> row_pointers() const {
    std::vector<const std::byte*> pointers(rows_);
    for (std::size_t i = 0; i < rows_; ++i) {
      pointers[i] = blocks_[i / kBlockRows].get() + i % kBlockRows * table_->row_bytes;
    }
    return pointers;
  }

  // Hands the memory over; the buffer is empty afterwards.
  Blocks take() {
    rows_ = 0;
    return std::exchange(blocks_, {});
  }

 private:
  static constexpr std::size_t kBlockRows = 2048;
  const Table* table_;
  Blocks blocks_;
  std::byte* next_ = nullptr;
  std::size_t rows_ = 0;
};

}  // namespace llmprof::trace
