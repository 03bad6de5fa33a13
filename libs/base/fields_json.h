#pragma once
// A struct, or a vector of structs, as JSON with the names of its fields as keys, and back. Unknown (nullopt, an empty
// text) is null. An enum needs a function json_name(Enum) beside it. A struct that says more than its fields, or has a
// base class, has a function fields_json(const Struct&) beside it.

#include <map>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/fields.h"
#include "base/json.h"

namespace llmprof::base {

template <class T>
Json fields_json(const T& value);

template <class T>
Json fields_json(const std::optional<T>& value) {
  return value ? fields_json(*value) : Json(nullptr);
}

template <class T>
Json fields_json(const std::vector<T>& values) {
  Json out = Json::array();
  for (const T& value : values) out.push_back(fields_json(value));
  return out;
}

// Names and their values are an object.
template <class T>
Json fields_json(const std::map<std::string, T>& values) {
  return Json(values);
}
template <class T>
Json fields_json(const std::vector<std::pair<std::string, T>>& values) {
  Json out = Json::object();
  for (const auto& [name, value] : values) out[name] = value;
  return out;
}

template <class T>
void add_fields(Json& out, const T& object) {
  for_each_field(object, [&](std::string_view name, const auto& field) {
    using Field = std::remove_cvref_t<decltype(field)>;
    if constexpr (kFieldsInline<Field>) {
      add_fields(out, field);
    } else {
      out[std::string(name)] = fields_json(field);
    }
  });
}

template <class T>
Json fields_json(const T& value) {
  if constexpr (std::is_convertible_v<T, std::string_view>) {
    return text_or_null(std::string(value));
  } else if constexpr (std::is_pointer_v<T>) {
    return value == nullptr ? Json(nullptr) : fields_json(*value);
  } else if constexpr (std::is_enum_v<T>) {
    return Json(json_name(value));
  } else if constexpr (std::is_arithmetic_v<T> || std::is_same_v<T, Json>) {
    return Json(value);
  } else {
    Json out = Json::object();
    add_fields(out, value);
    return out;
  }
}

// Reads what fields_json wrote; false if it is of another type. What is missing or of another type is left as it is, so
// that files of other versions stay readable.
template <class T>
bool read_fields(const Json& from, T& into);

template <class T>
bool read_fields(const Json& from, std::optional<T>& into) {
  T value{};
  const bool known = read_fields(from, value);
  if (known) into = std::move(value);
  return known;
}

template <class T>
bool read_fields(const Json& from, std::vector<T>& into) {
  if (!from.is_array()) return false;
  for (const Json& each : from) {
    T value{};
    if (read_fields(each, value)) into.push_back(std::move(value));
  }
  return true;
}

template <class T>
bool read_fields(const Json& from, T& into) {
  if constexpr (std::is_same_v<T, std::string>) {
    if (from.is_string()) into = from.get<std::string>();
    return from.is_string();
  } else if constexpr (std::is_arithmetic_v<T>) {
    if (!from.is_number() && !from.is_boolean()) return false;
    if constexpr (std::is_same_v<T, bool>) {  // earlier versions wrote 0 and 1
      into = from.is_boolean() ? from.get<bool>() : from.get<double>() != 0;
    } else {
      into = from.get<T>();
    }
    return true;
  } else {
    if (!from.is_object()) return false;
    for_each_field(into, [&](std::string_view name, auto& field) {
      const auto found = from.find(name);
      if (found != from.end()) read_fields(*found, field);
    });
    return true;
  }
}

}  // namespace llmprof::base
