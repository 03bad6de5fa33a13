#include <span>

#include "base/numbers.h"
#include "importers/cublas_log/call.h"

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

bool digits(std::string_view text, std::size_t at, std::size_t count, std::int64_t& value) {
  value = 0;
  for (std::size_t i = at; i < at + count; ++i) {
    if (text[i] < '0' || text[i] > '9') return false;
    value = value * 10 + (text[i] - '0');
  }
  return true;
}

// Days since 1970-01-01 of a date of the Gregorian calendar.
std::int64_t days_of(std::int64_t year, std::int64_t month, std::int64_t day) {
  year -= month <= 2 ? 1 : 0;
  const std::int64_t era = year / 400, year_of_era = year - era * 400;
  const std::int64_t day_of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
  return era * 146097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719468;
}

}  // namespace

std::optional<std::int64_t> integer(std::string_view text) { return base::parse_number<std::int64_t>(text); }

std::optional<std::int64_t> second_of(std::string_view text) {
  if (text.size() < 19 || text[4] != '-' || text[7] != '-' || text[13] != ':' || text[16] != ':') return std::nullopt;
  std::int64_t year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0;
  const bool good = digits(text, 0, 4, year) && digits(text, 5, 2, month) && digits(text, 8, 2, day) &&
                    digits(text, 11, 2, hour) && digits(text, 14, 2, minute) && digits(text, 17, 2, second);
  if (!good || year < 1970 || year > 2200 || month < 1 || month > 12 || day < 1 || day > 31 || hour > 23 ||
      minute > 59 || second > 60)
    return std::nullopt;
  return ((days_of(year, month, day) * 24 + hour) * 60 + minute) * 60 + second;
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
  std::string lower(name);
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c + 32);
  }
  return lower;
}

char transpose_name(std::string_view text) {
  const std::string_view name = bare(text, "OP_");
  return name == "T" ? 't' : name == "C" || name == "HERMITAN" ? 'c' : 'n';
}

std::string type_of_letter(char letter) {
  static constexpr Pair kTypes[] = {{"S", "float32"},   {"D", "float64"},    {"H", "float16"},
                                    {"C", "complex64"}, {"Z", "complex128"}, {"T", "bfloat16"}};
  for (const Pair& type : kTypes) {
    if (type.log.front() == letter) return std::string(type.ours);
  }
  return {};
}

}  // namespace llmprof::importers::cublas
