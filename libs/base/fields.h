#pragma once
// The fields of a plain struct by name, in the order of their declaration: for_each_field(row, [](name, value) {…}).
// Rows of SQL are read into structs and structs become JSON through this, so that a number is named once, where it is
// declared. Works for aggregates without base classes, of at most 64 fields.

#include <algorithm>
#include <array>
#include <string_view>
#include <tuple>
#include <type_traits>

namespace llmprof::base {
namespace fields_detail {

#ifdef __clang__
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wundefined-inline"
#pragma clang diagnostic ignored "-Wundefined-internal"
#pragma clang diagnostic ignored "-Wundefined-var-template"
#endif

struct AnyValue {
  template <class T>
  operator T() const;  // never called: only whether it could be counts
};

template <class T, class... Values>
constexpr std::size_t count() {
  if constexpr (requires { T{Values{}..., AnyValue{}}; }) {
    return count<T, Values..., AnyValue>();
  } else {
    return sizeof...(Values);
  }
}

// A structured binding needs its number of names in the source: there is no shorter way before C++26.
// clang-format off
#define LLMPROF_BIND(n, ...) else if constexpr (N == n) { auto& [__VA_ARGS__] = object; return std::tie(__VA_ARGS__); }
#define LLMPROF_8(p) p##0, p##1, p##2, p##3, p##4, p##5, p##6, p##7
#define LLMPROF_BIND_8(n, ...) \
  LLMPROF_BIND(n + 1, __VA_ARGS__ z0) LLMPROF_BIND(n + 2, __VA_ARGS__ z0, z1) \
  LLMPROF_BIND(n + 3, __VA_ARGS__ z0, z1, z2) LLMPROF_BIND(n + 4, __VA_ARGS__ z0, z1, z2, z3) \
  LLMPROF_BIND(n + 5, __VA_ARGS__ z0, z1, z2, z3, z4) LLMPROF_BIND(n + 6, __VA_ARGS__ z0, z1, z2, z3, z4, z5) \
  LLMPROF_BIND(n + 7, __VA_ARGS__ z0, z1, z2, z3, z4, z5, z6) LLMPROF_BIND(n + 8, __VA_ARGS__ LLMPROF_8(z))

template <std::size_t N, class T>
constexpr auto tie_fields(T& object) {
  if constexpr (N == 0) return std::tuple<>();
  LLMPROF_BIND_8(0)
  LLMPROF_BIND_8(8, LLMPROF_8(a),)
  LLMPROF_BIND_8(16, LLMPROF_8(a), LLMPROF_8(b),)
  LLMPROF_BIND_8(24, LLMPROF_8(a), LLMPROF_8(b), LLMPROF_8(c),)
  LLMPROF_BIND_8(32, LLMPROF_8(a), LLMPROF_8(b), LLMPROF_8(c), LLMPROF_8(d),)
  LLMPROF_BIND_8(40, LLMPROF_8(a), LLMPROF_8(b), LLMPROF_8(c), LLMPROF_8(d), LLMPROF_8(e),)
  LLMPROF_BIND_8(48, LLMPROF_8(a), LLMPROF_8(b), LLMPROF_8(c), LLMPROF_8(d), LLMPROF_8(e), LLMPROF_8(f),)
  LLMPROF_BIND_8(56, LLMPROF_8(a), LLMPROF_8(b), LLMPROF_8(c), LLMPROF_8(d), LLMPROF_8(e), LLMPROF_8(f), LLMPROF_8(g),)
  else static_assert(N <= 64, "a struct of more than 64 fields");
}
#undef LLMPROF_BIND_8
#undef LLMPROF_8
#undef LLMPROF_BIND
// clang-format on

template <class T>
struct Wrapped {
  T value;
};
template <class T>
extern const Wrapped<T> unreal;  // has addresses, but no definition: only the names of its parts are asked for

template <class T>
struct Address {
  T* value;
};
template <class T>
Address(T*) -> Address<T>;

// "… P = Address<…>{(& unreal<Row>.Wrapped<Row>::value.Row::time_ns)}; …" of g++, "[P = {&unreal.value.time_ns}]" of
// clang: the field is the last word before the bracket closes.
template <auto P>
constexpr std::string_view name_in_signature() {
  std::string_view text = __PRETTY_FUNCTION__;
  text = text.substr(0, text.rfind('}'));
  if (text.ends_with(')')) text.remove_suffix(1);
  return text.substr(text.find_last_of(".:") + 1);
}

template <class T, std::size_t... I>
constexpr auto names_of(std::index_sequence<I...>) {
  return std::array<std::string_view, sizeof...(I)>{
      name_in_signature<Address{&std::get<I>(tie_fields<sizeof...(I)>(unreal<T>.value))}>()...};
}

#ifdef __clang__
#pragma clang diagnostic pop
#endif

}  // namespace fields_detail

// A struct for which this is true is a part of the one around it: its fields count as fields of that one.
template <class T>
inline constexpr bool kFieldsInline = false;

template <class T>
inline constexpr std::size_t kFieldCount = fields_detail::count<std::remove_cv_t<T>>();

template <class T>
inline constexpr auto kFieldNames =
    fields_detail::names_of<std::remove_cv_t<T>>(std::make_index_sequence<kFieldCount<T>>());

template <class T, class Visit>
void for_each_field(T& object, Visit&& visit) {
  const auto fields = fields_detail::tie_fields<kFieldCount<T>>(object);
  [&]<std::size_t... I>(std::index_sequence<I...>) { (visit(kFieldNames<T>[I], std::get<I>(fields)), ...); }
  (std::make_index_sequence<kFieldCount<T>>());
}

// visit(to, from) for the fields that two structs have by the same name.
template <class To, class From, class Visit>
void for_each_shared_field(To& to, const From& from, Visit&& visit) {
  const auto targets = fields_detail::tie_fields<kFieldCount<To>>(to);
  const auto sources = fields_detail::tie_fields<kFieldCount<From>>(from);
  const auto look_for = [&]<std::size_t I>() {
    constexpr const auto& kNames = kFieldNames<From>;
    constexpr auto kAt =
        static_cast<std::size_t>(std::find(kNames.begin(), kNames.end(), kFieldNames<To>[I]) - kNames.begin());
    if constexpr (kAt < kNames.size()) visit(std::get<I>(targets), std::get<kAt>(sources));
  };
  [&]<std::size_t... I>(std::index_sequence<I...>) { (look_for.template operator()<I>(), ...); }
  (std::make_index_sequence<kFieldCount<To>>());
}

}  // namespace llmprof::base
