#pragma once
// A struct, or a vector of structs, as JSON with the names of its fields as keys. Unknown (nullopt, an empty text)
// is null. An enum needs a function json_name(Enum) beside it. A struct that says more than its fields, or has a base
// class, has a function fields_json(const Struct&) beside it.

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

}  // namespace llmprof::base
