#pragma once
// A struct, or a vector of structs, as JSON with the names of its fields as keys. Unknown (nullopt, an empty text)
// is null. An enum needs a function json_name(Enum) beside it.

#include <optional>
#include <string>
#include <type_traits>
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
  if constexpr (std::is_same_v<T, std::string>) {
    return text_or_null(value);
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
