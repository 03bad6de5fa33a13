#pragma once
// .safetensors files for tests: a header as the library writes it, and zeros (a hole in the file) for the values.

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

namespace llmprof::model::testing {

struct SafetensorsBuilder {
  std::string header = R"({"__metadata__":{"format":"pt"})";
  std::uint64_t data_bytes = 0;

  void tensor(std::string_view name, std::string_view type, const std::vector<std::int64_t>& shape) {
    std::uint64_t bytes = type == "F32" || type == "I32" || type == "U32" ? 4 : type == "BF16" || type == "F16" ? 2 : 1;
    std::string sizes;
    for (const std::int64_t size : shape) {
      bytes *= static_cast<std::uint64_t>(size);
      sizes += (sizes.empty() ? "" : ",") + std::to_string(size);
    }
    header += ",\"" + std::string(name) + R"(":{"dtype":")" + std::string(type) + R"(","shape":[)" + sizes +
              R"(],"data_offsets":[)" + std::to_string(data_bytes) + "," + std::to_string(data_bytes + bytes) + "]}";
    data_bytes += bytes;
  }

  void write(const std::string& path) const {
    const std::string text = header + "}";
    const std::uint64_t length = text.size();
    {
      std::ofstream out(path, std::ios::binary | std::ios::trunc);
      out.write(reinterpret_cast<const char*>(&length), sizeof(length));
      out << text;
    }
    std::filesystem::resize_file(path, sizeof(length) + length + data_bytes);
  }
};

}  // namespace llmprof::model::testing
