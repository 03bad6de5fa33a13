#include "importers/cublas_log/names.h"

#include <span>

#include "base/numbers.h"
#include "base/strings.h"
#include "importers/text.h"

namespace llmprof::importers::cublas {
namespace {

struct Pair {
  std::string_view log, ours;
};

std::string look_up(std::span<const Pair> names, std::string_view text) {
  for (const Pair& name : names) {
    if (name.log == text) return std::string(name.ours);
  }
  return std::string(text);
}

// "CUBLAS_COMPUTE_32F(68)" -> "32F"
std::string_view bare(std::string_view text, std::string_view prefix) {
  text = text.substr(0, text.find('('));
  if (text.starts_with("CUBLASLT_")) text.remove_prefix(9);
  if (text.starts_with("CUBLAS_")) text.remove_prefix(7);
  if (text.starts_with("CUDA_")) text.remove_prefix(5);
  if (text.starts_with(prefix)) text.remove_prefix(prefix.size());
  return text;
}

}  // namespace

std::optional<std::int64_t> integer(std::string_view text) { return base::parse_number<std::int64_t>(text); }

std::optional<std::int64_t> second_of(std::string_view text) {
  if (text.size() < 19 || text[4] != '-' || text[7] != '-') return std::nullopt;
  const auto date = date_of(text.substr(0, 4), text.substr(5, 2), text.substr(8, 2));
  const auto second = second_of_day(text.substr(11, 8));
  if (!date || !second) return std::nullopt;
  return std::chrono::sys_days(*date).time_since_epoch().count() * std::int64_t{86'400} + *second;
}

std::string type_name(std::string_view text) {
  static constexpr Pair kTypes[] = {{"R_32F", "float32"},
                                    {"R_64F", "float64"},
                                    {"R_16F", "float16"},
                                    {"R_16BF", "bfloat16"},
                                    {"R_8F_E4M3", "float8_e4m3"},
                                    {"R_8F_E5M2", "float8_e5m2"},
                                    {"R_8F_UE8M0", "float8_e8m0"},
                                    {"R_6F_E2M3", "float6_e2m3"},
                                    {"R_6F_E3M2", "float6_e3m2"},
                                    {"R_4F_E2M1", "float4_e2m1"},
                                    {"R_8I", "int8"},
                                    {"R_8U", "uint8"},
                                    {"R_32I", "int32"},
                                    {"R_32U", "uint32"},
                                    {"R_4I", "int4"},
                                    {"R_4U", "uint4"},
                                    {"C_32F", "complex64"},
                                    {"C_64F", "complex128"},
                                    {"R_64I", "int64"}};
  return look_up(kTypes, bare(text, ""));
}

std::string compute_name(std::string_view text) {
  static constexpr Pair kTypes[] = {{"16F", "float16"},
                                    {"16F_PEDANTIC", "float16"},
                                    {"32F", "float32"},
                                    {"32F_PEDANTIC", "float32"},
                                    {"64F", "float64"},
                                    {"64F_PEDANTIC", "float64"},
                                    {"32I", "int32"},
                                    {"32I_PEDANTIC", "int32"},
                                    {"32F_FAST_16F", "float32_fast_float16"},
                                    {"32F_FAST_16BF", "float32_fast_bfloat16"},
                                    {"32F_FAST_TF32", "tf32"}};
  const std::string_view name = bare(text, "");
  if (name.starts_with("R_") || name.starts_with("C_")) return type_name(name);  // cuBLAS before 11
  return look_up(kTypes, bare(text, "COMPUTE_"));
}

std::string epilogue_name(std::string_view text) {
  const std::string_view name = bare(text, "EPILOGUE_");
  if (name == "DEFAULT") return {};
  return base::lowercase(name);
}

char transpose_name(std::string_view text) {
  const std::string_view name = bare(text, "OP_");
  return name == "T" ? 't' : name == "C" || name == "HERMITAN" ? 'c' : 'n';
}

std::string type_of_letter(char letter) {
  static constexpr Pair kTypes[] = {{"S", "float32"},   {"D", "float64"},    {"H", "float16"},
                                    {"C", "complex64"}, {"Z", "complex128"}, {"T", "bfloat16"}};
  const std::string name = look_up(kTypes, {&letter, 1});
  return name.size() > 1 ? name : "";
}

}  // namespace llmprof::importers::cublas
