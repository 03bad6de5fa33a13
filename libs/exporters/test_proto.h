#pragma once
// For tests: protocol buffers read field by field, written apart from ProtoWriter.

#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

namespace llmprof::exporters {

struct ProtoField {
  std::uint32_t number = 0;
  int wire = 0;
  std::uint64_t value = 0;      // varint or fixed
  std::string_view bytes = {};  // of length-delimited fields
};

inline std::uint64_t take_varint(std::string_view& bytes) {
  std::uint64_t value = 0;
  for (int shift = 0; !bytes.empty(); shift += 7) {
    const auto byte = static_cast<unsigned char>(bytes.front());
    bytes.remove_prefix(1);
    value |= static_cast<std::uint64_t>(byte & 127) << shift;
    if (byte < 128) break;
  }
  return value;
}

// Empty when the bytes are not a message.
inline std::vector<ProtoField> proto_fields(std::string_view bytes) {
  std::vector<ProtoField> fields;
  while (!bytes.empty()) {
    const std::uint64_t tag = take_varint(bytes);
    ProtoField field{static_cast<std::uint32_t>(tag >> 3), static_cast<int>(tag & 7)};
    if (field.wire == 0) {
      field.value = take_varint(bytes);
    } else if (field.wire == 1 && bytes.size() >= 8) {
      std::memcpy(&field.value, bytes.data(), 8);
      bytes.remove_prefix(8);
    } else if (field.wire == 2) {
      const std::uint64_t length = take_varint(bytes);
      if (length > bytes.size()) return {};
      field.bytes = bytes.substr(0, length);
      bytes.remove_prefix(length);
    } else {
      return {};
    }
    fields.push_back(field);
  }
  return fields;
}

inline const ProtoField* find_field(const std::vector<ProtoField>& fields, std::uint32_t number) {
  for (const ProtoField& field : fields) {
    if (field.number == number) return &field;
  }
  return nullptr;
}

}  // namespace llmprof::exporters
