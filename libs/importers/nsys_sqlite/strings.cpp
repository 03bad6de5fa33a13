#include "importers/nsys_sqlite/strings.h"

#include <fmt/format.h>

#include "base/kernel_name.h"

namespace llmprof::importers::nsys {
namespace {

std::string_view without_version(std::string_view function) {
  const std::size_t digits = function.find_last_not_of("0123456789");
  if (digits == std::string_view::npos || digits + 1 == function.size() || digits < 2) return function;
  const bool versioned = function[digits] == 'v' && function[digits - 1] == '_';
  return versioned ? function.substr(0, digits - 1) : function;
}

}  // namespace

std::string Strings::text(std::int64_t number) {
  auto text = database_.text_of(table_, "id", number, "value");
  if (text) return std::move(*text);
  database_.sink().lose(trace::Loss::kLostName, 1, "texts that table StringIds does not hold",
                        fmt::format("number {}", number));
  return fmt::format("<missing name {}>", number);
}

trace::Name Strings::name(std::int64_t number) {
  return names_.get(number, [&] { return database_.sink().name(text(number)); });
}

bool Strings::is(std::int64_t number, std::string_view text) {
  return number >= 0 && database_.sink().names().text(name(number)) == text;
}

trace::Name Strings::runtime_function(std::int64_t number) {
  return functions_.get(number, [&] { return database_.sink().name(without_version(text(number))); });
}

trace::Name Strings::kernel(std::optional<std::int64_t> mangled, std::optional<std::int64_t> demangled,
                            std::optional<std::int64_t> short_name) {
  if (mangled) return mangled_.get(*mangled, [&] { return database_.sink().name(base::kernel_name(text(*mangled))); });
  if (!demangled) return short_name ? name(*short_name) : database_.sink().name("<unnamed>");
  return demangled_.get(*demangled, [&] {
    const std::string whole = text(*demangled);
    const std::string_view bare = base::without_signature(whole);
    return database_.sink().name(bare.empty() ? std::string_view(whole) : bare);
  });
}

}  // namespace llmprof::importers::nsys
