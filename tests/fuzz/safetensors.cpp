// A .safetensors file: the header's rules, then every tensor read.

#include "workload/weights.h"

#include <cstring>

#include "fuzz.h"

namespace llmprof::fuzz {
namespace {

void run(std::string_view input) {
  const auto file = workload::SafetensorsFile::open(in_file(input));
  if (!file) return;
  std::uint64_t total = 0;
  for (const workload::SafetensorsEntry& entry : file->entries()) {
    require(entry.begin <= entry.end && entry.end <= input.size());
    require(file->find(entry.name) != nullptr);
    total += entry.end - entry.begin;
    if (entry.type != "F32" && entry.type != "F16" && entry.type != "BF16") continue;
    require(entry.count() >= 0 && static_cast<std::uint64_t>(entry.count()) <= input.size());
    std::vector<float> values(static_cast<std::size_t>(entry.count()));
    (void)file->read(entry, values.data());
  }
  require(total <= input.size());
}

std::string file_of(const std::string& header, std::size_t data_bytes) {
  std::string bytes(8, '\0');
  const std::uint64_t length = header.size();
  std::memcpy(bytes.data(), &length, 8);
  return bytes + header + std::string(data_bytes, '\x3f');
}

std::vector<std::string> seeds() {
  return {
      file_of(
          R"({"__metadata__":{"format":"pt"},"a":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]},)"
          R"("b.weight":{"dtype":"BF16","shape":[4],"data_offsets":[24,32]},)"
          R"("c":{"dtype":"F8_E4M3","shape":[5],"data_offsets":[32,37]},"d":{"dtype":"F16","shape":[],"data_offsets":[37,39]}})",
          39),
      file_of("{}", 0), file_of(R"({"a":{"dtype":"I64","shape":[0],"data_offsets":[0,0]}})", 0)};
}

std::vector<std::string> dictionary() {
  return {"\"dtype\"", "\"shape\"", "\"data_offsets\"",    "__metadata__",         "F32",        "F16",   "BF16",
          "I64",       "BOOL",      "9223372036854775807", "18446744073709551615", "4294967296", "[0,0]", "{}"};
}

}  // namespace

const Target kTarget{run, seeds, dictionary};

}  // namespace llmprof::fuzz
