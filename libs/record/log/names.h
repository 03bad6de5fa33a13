#pragma once
// The names of one log: its string ids, domains and categories, mapped to names of the run through vectors, so that
// no event hashes a string. A name whose definition is missing becomes "<lost name N>" and is counted once.

#include <fmt/format.h>
#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <unordered_map>
#include <vector>

#include "base/fields.h"
#include "base/kernel_name.h"
#include "trace/rows.h"
#include "trace/strings.h"
#include "wire/format.h"

namespace llmprof::record {

// How matrices are stored and transposed, by the numbers of the wire.
class LayoutNames {
 public:
  explicit LayoutNames(trace::Strings& strings)
      : layouts_{strings.intern("column"), strings.intern("row")},
        transposes_{strings.intern("n"), strings.intern("t"), strings.intern("c")} {}
  // The layout and the two transposes of a call, or of its shape.
  template <class Call>
  void set(trace::GemmRow& row, const Call& call) const {
    row.layout = layouts_[call.layout == wire::Layout::kRowMajor ? 1 : 0];
    row.transpose_a = transposes_[std::min<std::size_t>(static_cast<std::size_t>(call.trans_a), 2)];
    row.transpose_b = transposes_[std::min<std::size_t>(static_cast<std::size_t>(call.trans_b), 2)];
  }

 private:
  trace::Name layouts_[2], transposes_[3];
};

// The BLAS routine behind the many spellings of it: prefixes and suffixes of interfaces and integer widths taken off.
inline std::string_view blas_routine(std::string_view function) {
  for (const std::string_view prefix : {"scipy_", "cblas_"}) {
    if (function.starts_with(prefix)) function.remove_prefix(prefix.size());
  }

  for (const std::string_view suffix : {"_", "64", "_"}) {
    if (function.ends_with(suffix)) function.remove_suffix(suffix.size());
  }

  return function;
}

class LogNames {
 public:
  explicit LogNames(trace::Strings& strings) : strings_(strings) {}

  void define(wire::StringId id, std::string_view text) {
    if (id >= kMaxId) return;  // counted as lost when used
    if (id >= texts_.size()) {
      texts_.resize(id + 1);
      defined_.resize(id + 1);
      names_.resize(std::max<std::size_t>(names_.size(), id + 1));
    }
    texts_[id] = text;
    defined_[id] = true;
    names_[id] = {};
    if (id < gpu_kernel_names_.size()) gpu_kernel_names_[id] = {};
  }

  void define_domain(const wire::DomainRecord& record) {
    domains_[record.domain] = record.name;
    last_domain_ = 0;
  }

  void define_category(const wire::CategoryRecord& record) {
    categories_[category_key(record.domain, record.category)] = record.name;
    last_category_ = 0;
  }

  trace::Name name(wire::StringId id) {
    if (id < names_.size() && names_[id].id != 0) return names_[id];
    return id == 0 ? trace::Name{} : resolve(id);
  }

  // As in the log. Does not enter the run's dictionary: command lines hold secrets.
  std::string_view text(wire::StringId id) const { return id < texts_.size() ? std::string_view(texts_[id]) : ""; }
  // Of the run's gemm and kernel tables: "cblas_sgemm64_" -> "sgemm".
  trace::Name kernel_name(wire::StringId function) {
    if (function < kernel_names_.size() && kernel_names_[function].id != 0) return kernel_names_[function];
    const trace::Name name = strings_.intern(blas_routine(strings_.text(this->name(function))));
    if (function < kMaxId) {
      if (function >= kernel_names_.size()) kernel_names_.resize(function + 1);
      kernel_names_[function] = name;
    }
    return name;
  }

  // Demangled: base/kernel_name.h.
  trace::Name gpu_kernel_name(wire::StringId symbol) {
    if (symbol == 0) return {};
    if (symbol >= texts_.size() || !defined_[symbol]) return name(symbol);
    if (symbol >= gpu_kernel_names_.size()) gpu_kernel_names_.resize(texts_.size());
    trace::Name& known = gpu_kernel_names_[symbol];
    if (known.id == 0) known = strings_.intern(base::kernel_name(texts_[symbol]));
    return known;
  }

  trace::Name domain(std::uint32_t number) {
    if (number == 0) return {};
    if (number == last_domain_) return last_domain_name_;
    const auto found = domains_.find(number);
    if (found == domains_.end()) {
      ++lost_names_;
      last_domain_name_ = strings_.intern(fmt::format("<lost domain {}>", number));
    } else {
      last_domain_name_ = name(found->second);
    }
    last_domain_ = number;
    return last_domain_name_;
  }

  trace::Name category(std::uint32_t domain, std::uint32_t number) {
    if (number == 0) return {};
    const std::uint64_t key = category_key(domain, number);
    if (key == last_category_) return last_category_name_;
    const auto found = categories_.find(key);
    // A program need not name its categories: then the number stands for itself.
    last_category_name_ = found == categories_.end() ? strings_.intern(fmt::to_string(number)) : name(found->second);
    last_category_ = key;
    return last_category_name_;
  }

  std::uint64_t lost_names() const { return lost_names_; }

 private:
  static constexpr std::uint64_t category_key(std::uint32_t domain, std::uint32_t number) {
    return (std::uint64_t{domain} << 32) | number;
  }

  static constexpr wire::StringId kMaxId = 1u << 22;  // more than a collector ever hands out

  trace::Name resolve(wire::StringId id) {
    if (id < texts_.size() && defined_[id]) return names_[id] = strings_.intern(texts_[id]);
    ++lost_names_;
    const trace::Name name = strings_.intern(fmt::format("<lost name {}>", id));
    if (id >= kMaxId) return name;
    if (id >= names_.size()) names_.resize(id + 1);
    return names_[id] = name;
  }

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

// A number of a log, which may be any, as one that can be added to others.
inline std::int64_t bounded(std::uint64_t value) {
  return static_cast<std::int64_t>(std::min<std::uint64_t>(value, INT64_MAX / 4));
}

// What a record says becomes the columns of the same name. Names only where `names` is given; enumerations have texts
// of their own, which are not known here.
template <class Row, class Record>
void fill(Row& row, const Record& record, LogNames* names = nullptr) {
  base::for_each_shared_field(row, record, [&]<class To, class From>(To& to, const From& from) {
    if constexpr (std::is_same_v<To, trace::Name>) {
      if constexpr (std::is_same_v<From, wire::StringId>) {
        if (names != nullptr) to = names->name(from);
      }
    } else if constexpr (std::is_same_v<To, bool>) {
      to = from != 0;
    } else if constexpr (std::is_same_v<To, trace::OptionalInt32>) {
      to = static_cast<std::int32_t>(std::min<std::uint64_t>(from, INT32_MAX));
    } else if constexpr (std::is_unsigned_v<From>) {
      to = bounded(from);
    } else if constexpr (std::is_arithmetic_v<From>) {
      to = from;
    }
  });
  // Times were held against the window of the recording, which may lie anywhere.
  if constexpr (requires { row.ts_ns, record.ts_ns; }) row.ts_ns = static_cast<std::int64_t>(record.ts_ns);
  if constexpr (requires { row.begin_ns, record.begin_ns; }) row.begin_ns = static_cast<std::int64_t>(record.begin_ns);
  if constexpr (requires { row.end_ns, record.end_ns; }) row.end_ns = static_cast<std::int64_t>(record.end_ns);
}

}  // namespace llmprof::record
