#pragma once
// Texts of the table StringIds, by their number, and what is made of them. Only those that are asked for are read.

#include <functional>
#include <unordered_map>
#include <vector>

#include "importers/nsys_sqlite/database.h"

namespace llmprof::importers::nsys {

// Names by number: numbers are small and dense in practice, which an array is best for.
class NameCache {
 public:
  template <class Make>
  trace::Name get(std::int64_t number, const Make& make) {
    if (number >= 0 && number < kDense) {
      const auto index = static_cast<std::size_t>(number);
      if (index >= dense_.size()) dense_.resize(index + 1);
      if (dense_[index].id == 0) dense_[index] = make();
      return dense_[index];
    }
    trace::Name& name = sparse_[number];
    if (name.id == 0) name = make();
    if (sparse_.size() > kMostSparse) sparse_.clear();
    return name;
  }

 private:
  static constexpr std::int64_t kDense = 1 << 20;
  static constexpr std::size_t kMostSparse = 1 << 20;
  std::vector<trace::Name> dense_;
  std::unordered_map<std::int64_t, trace::Name> sparse_;
};

class Strings {
 public:
  explicit Strings(Database& database) : database_(database), table_(database.find_table("StringIds")) {}

  // A number that StringIds does not have is "<missing name N>", counted once.
  trace::Name name(std::int64_t number);
  // A function of the CUDA runtime without the version that Nsight adds: "cudaLaunchKernel_v7000".
  trace::Name runtime_function(std::int64_t number);
  // As llmprof's own capture names kernels: base/kernel_name.h. Numbers of texts; the first that is there counts.
  trace::Name kernel(std::optional<std::int64_t> mangled, std::optional<std::int64_t> demangled,
                     std::optional<std::int64_t> short_name);
  std::string text(std::int64_t number);
  bool is(std::int64_t number, std::string_view text);

 private:
  Database& database_;
  std::string table_;
  NameCache names_, functions_, mangled_, demangled_;
};

}  // namespace llmprof::importers::nsys
