#include "record/log/names.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/kernel_name.h"

namespace llmprof::record {
namespace {

constexpr std::uint64_t category_key(std::uint32_t domain, std::uint32_t number) {
  return (std::uint64_t{domain} << 32) | number;
}

}  // namespace

void LogNames::define(wire::StringId id, std::string_view text) {
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

void LogNames::define_domain(const wire::DomainRecord& record) {
  domains_[record.domain] = record.name;
  last_domain_ = 0;
}

void LogNames::define_category(const wire::CategoryRecord& record) {
  categories_[category_key(record.domain, record.category)] = record.name;
  last_category_ = 0;
}

trace::Name LogNames::resolve(wire::StringId id) {
  if (id < texts_.size() && defined_[id]) return names_[id] = strings_.intern(texts_[id]);
  ++lost_names_;
  const trace::Name name = strings_.intern(fmt::format("<lost name {}>", id));
  if (id >= kMaxId) return name;
  if (id >= names_.size()) names_.resize(id + 1);
  return names_[id] = name;
}

trace::Name LogNames::kernel_name(wire::StringId function) {
  if (function < kernel_names_.size() && kernel_names_[function].id != 0) return kernel_names_[function];
  const trace::Name name = strings_.intern(blas_routine(strings_.text(this->name(function))));
  if (function < kMaxId) {
    if (function >= kernel_names_.size()) kernel_names_.resize(function + 1);
    kernel_names_[function] = name;
  }
  return name;
}

trace::Name LogNames::gpu_kernel_name(wire::StringId symbol) {
  if (symbol == 0) return {};
  if (symbol >= texts_.size() || !defined_[symbol]) return name(symbol);
  if (symbol >= gpu_kernel_names_.size()) gpu_kernel_names_.resize(texts_.size());
  trace::Name& known = gpu_kernel_names_[symbol];
  if (known.id == 0) known = strings_.intern(base::kernel_name(texts_[symbol]));
  return known;
}

trace::Name LogNames::domain(std::uint32_t number) {
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

trace::Name LogNames::category(std::uint32_t domain, std::uint32_t number) {
  if (number == 0) return {};
  const std::uint64_t key = category_key(domain, number);
  if (key == last_category_) return last_category_name_;
  const auto found = categories_.find(key);
  // A program need not name its categories: then the number stands for itself.
  last_category_name_ = found == categories_.end() ? strings_.intern(fmt::to_string(number)) : name(found->second);
  last_category_ = key;
  return last_category_name_;
}

std::string_view blas_routine(std::string_view function) {
  for (const std::string_view prefix : {"scipy_", "cblas_"}) {
    if (function.starts_with(prefix)) function.remove_prefix(prefix.size());
  }
  for (const std::string_view suffix : {"_", "64", "_"}) {
    if (function.ends_with(suffix)) function.remove_suffix(suffix.size());
  }
  return function;
}

}  // namespace llmprof::record
