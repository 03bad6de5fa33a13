#pragma once
// Some rows of one table, in the order of the file they are to become, and the names they use. Independent of Strings
// once made, so another thread may write it while the dictionary grows (texts of a dictionary never move).

#include <cstddef>
#include <vector>

#include "trace/schema.h"
#include "trace/strings.h"

namespace llmprof::trace {

class RowBatch {
 public:
  RowBatch(const Table& table, std::vector<const std::byte*> rows, const Strings& strings);

  // Lane by lane, each by the table's sort column; rows of equal keys keep their order. A lane is one thread's rows:
  // side by side their times advance in small even steps and their names repeat, which is what compresses.
  void sort();

  const Table& table() const { return *table_; }
  const std::vector<const std::byte*>& rows() const { return rows_; }

  // The distinct names of a column. Column types other than kName have none.
  struct Dictionary {
    std::vector<const char*> texts;    // by code
    std::vector<std::uint32_t> codes;  // by Name::id
  };
  const Dictionary& dictionary(std::size_t column) const { return dictionaries_[column]; }

 private:
  const Table* table_;
  std::vector<const std::byte*> rows_;
  std::vector<Dictionary> dictionaries_;
};

}  // namespace llmprof::trace
