#pragma once
// The names of one log: its string ids, domains and categories, mapped to names of the run through vectors, so that
// no event hashes a string. A name whose definition is missing becomes "<lost name N>" and is counted once.

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "trace/strings.h"
#include "wire/format.h"

namespace llmprof::record {

// How matrices are stored and transposed, by the numbers of the wire.
class LayoutNames {
 public:
  explicit LayoutNames(trace::Strings& strings)
      : layouts_{strings.intern("column"), strings.intern("row")},
        transposes_{strings.intern("n"), strings.intern("t"), strings.intern("c")} {}
  template <class Call, class Row>  // a record or shape with layout and the two transposes, to the row of its product
  void set(Row& row, wire::Layout layout, Call transpose_a, Call transpose_b) const {
    row.layout = layouts_[layout == wire::Layout::kRowMajor ? 1 : 0];
    row.transpose_a = transposes_[std::min<std::size_t>(static_cast<std::size_t>(transpose_a), 2)];
    row.transpose_b = transposes_[std::min<std::size_t>(static_cast<std::size_t>(transpose_b), 2)];
  }

 private:
  trace::Name layouts_[2], transposes_[3];
};

class LogNames {
 public:
  explicit LogNames(trace::Strings& strings) : strings_(strings) {}

  void define(wire::StringId id, std::string_view text);
  void define_domain(const wire::DomainRecord& record);
  void define_category(const wire::CategoryRecord& record);

  trace::Name name(wire::StringId id) {
    if (id < names_.size() && names_[id].id != 0) return names_[id];
    return id == 0 ? trace::Name{} : resolve(id);
  }
  // As in the log. Does not enter the run's dictionary: command lines hold secrets.
  std::string_view text(wire::StringId id) const { return id < texts_.size() ? std::string_view(texts_[id]) : ""; }
  // Of the run's gemm and kernel tables: "cblas_sgemm64_" -> "sgemm".
  trace::Name kernel_name(wire::StringId function);
  // Demangled: base/kernel_name.h.
  trace::Name gpu_kernel_name(wire::StringId symbol);
  trace::Name domain(std::uint32_t number);
  trace::Name category(std::uint32_t domain, std::uint32_t number);

  std::uint64_t lost_names() const { return lost_names_; }

 private:
  static constexpr wire::StringId kMaxId = 1u << 22;  // more than a collector ever hands out

  trace::Name resolve(wire::StringId id);

  trace::Strings& strings_;
  std::vector<std::string> texts_;  // by string id
  std::vector<bool> defined_;
  std::vector<trace::Name> names_;  // by string id, once used
  std::vector<trace::Name> kernel_names_;
  std::vector<trace::Name> gpu_kernel_names_;
  std::unordered_map<std::uint32_t, wire::StringId> domains_;
  std::unordered_map<std::uint64_t, wire::StringId> categories_;
  std::uint64_t lost_names_ = 0;

  // The last answers: neighbours nearly always have the same domain and category.
  std::uint32_t last_domain_ = 0;
  trace::Name last_domain_name_;
  std::uint64_t last_category_ = 0;
  trace::Name last_category_name_;
};

// The BLAS routine behind the many spellings of it: prefixes and suffixes of interfaces and integer widths taken off.
std::string_view blas_routine(std::string_view function);

}  // namespace llmprof::record
