#pragma once
// GGUF files for tests, byte by byte: good ones, and ones that break a rule.

#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/checkpoint/gguf.h"

namespace llmprof::model::testing {

template <class T>
std::string le(T value) {  // little-endian, as this machine
  std::string bytes(sizeof(value), '\0');
  std::memcpy(bytes.data(), &value, sizeof(value));
  return bytes;
}

inline std::string gguf_text(std::string_view text) {
  return le(static_cast<std::uint64_t>(text.size())) + std::string(text);
}

struct GgufBuilder {
  std::string magic = "GGUF";
  std::uint32_t version = 3;
  std::optional<std::uint64_t> announced_tensors, announced_keys;  // other than there are
  std::uint64_t alignment = 32;                                    // of the data as it is written
  std::string keys, tensors;
  std::uint64_t key_count = 0, tensor_count = 0, data_bytes = 0;

  void raw_key(std::string_view key, std::uint32_t type, const std::string& value) {
    keys += gguf_text(key) + le(type) + value;
    ++key_count;
  }
  void text(std::string_view key, std::string_view value) { raw_key(key, 8, gguf_text(value)); }
  void u32(std::string_view key, std::uint32_t value) { raw_key(key, 4, le(value)); }
  void texts(std::string_view key, std::uint64_t count) {  // an array of `count` texts "x"
    std::string value = le(std::uint32_t{8}) + le(count);
    for (std::uint64_t i = 0; i < count; ++i) value += gguf_text("x");
    raw_key(key, 9, value);
  }
  void numbers(std::string_view key, const std::vector<std::int32_t>& values) {
    std::string value = le(std::uint32_t{5}) + le(std::uint64_t{values.size()});
    for (const std::int32_t number : values) value += le(number);
    raw_key(key, 9, value);
  }

  void raw_tensor(std::string_view name, const std::vector<std::uint64_t>& sizes, std::uint32_t type,
                  std::uint64_t offset) {
    tensors += gguf_text(name) + le(static_cast<std::uint32_t>(sizes.size()));
    for (const std::uint64_t size : sizes) tensors += le(size);
    tensors += le(type) + le(offset);
    ++tensor_count;
  }
  // With the offset that is right for it.
  void tensor(std::string_view name, const std::vector<std::uint64_t>& sizes, std::uint32_t type = 0) {
    raw_tensor(name, sizes, type, data_bytes);
    const GgmlType* const known = find_ggml_type(type);
    std::uint64_t values = 1;
    for (const std::uint64_t size : sizes) values *= size;
    const std::uint64_t bytes = known != nullptr ? values / known->values * known->bytes : 0;
    data_bytes += (bytes + alignment - 1) / alignment * alignment;
  }

  std::string header() const {
    return magic + le(version) + le(announced_tensors.value_or(tensor_count)) + le(announced_keys.value_or(key_count)) +
           keys + tensors;
  }
  std::string file() const {
    std::string bytes = header();
    bytes.resize((bytes.size() + alignment - 1) / alignment * alignment);
    return bytes + std::string(data_bytes, '\x3f');
  }
};

}  // namespace llmprof::model::testing
