// Reads a file of weights, as numbers of 32 bits. Apart from weights.cpp, so that it is fuzzed without the model.

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/errors.h"
#include "workload/weights.h"

namespace llmprof::workload {
namespace {

float widen_bf16(std::uint16_t bits) {
  const std::uint32_t wide = std::uint32_t{bits} << 16;
  float value = 0;
  std::memcpy(&value, &wide, sizeof(value));
  return value;
}

// 1 sign, 5 exponent (bias 15), 10 mantissa bits.
float widen_f16(std::uint16_t bits) {
  const std::uint32_t exponent = bits >> 10 & 0x1F;
  const std::uint32_t mantissa = bits & 0x3FF;
  const float sign = (bits & 0x8000) != 0 ? -1.0F : 1.0F;
  if (exponent == 0) return sign * static_cast<float>(mantissa) * 0x1.0p-24F;
  const std::uint32_t wide = (exponent == 0x1F ? 0xFFU : exponent + 112) << 23 | mantissa << 13;
  float value = 0;
  std::memcpy(&value, &wide, sizeof(value));
  return sign * value;
}

}  // namespace

Result<SafetensorsFile> SafetensorsFile::open(const std::string& path) {
  LLMPROF_LET(base::RegularFile file, base::RegularFile::open(path));
  LLMPROF_LET(base::SafetensorsHeader header, base::read_safetensors_header(file));
  return SafetensorsFile(std::move(file), std::move(header));
}

SafetensorsFile::SafetensorsFile(base::RegularFile file, base::SafetensorsHeader header)
    : file_(std::move(file)), header_(std::move(header)) {}

const SafetensorsEntry* SafetensorsFile::find(std::string_view name) const {
  const auto found = std::find_if(entries().begin(), entries().end(),
                                  [&](const SafetensorsEntry& entry) { return entry.name == name; });
  return found != entries().end() ? &*found : nullptr;
}

Result<void> SafetensorsFile::read(const SafetensorsEntry& entry, float* out) const {
  const std::uint64_t bytes = entry.end - entry.begin;
  if (entry.type == "F32") return file_.read_at(header_.data_offset + entry.begin, out, bytes);
  const bool bf16 = entry.type == "BF16";
  if (!bf16 && entry.type != "F16") {
    return Error{ErrorCode::kUnsupported,
                 fmt::format("{}: {}: type {} cannot be read as float", file_.path(), entry.name, entry.type),
                 "F32, F16 and BF16 can"};
  }
  std::vector<std::uint16_t> half(bytes / 2);
  LLMPROF_TRY(file_.read_at(header_.data_offset + entry.begin, half.data(), bytes));
  std::transform(half.begin(), half.end(), out, bf16 ? widen_bf16 : widen_f16);
  return {};
}

}  // namespace llmprof::workload
