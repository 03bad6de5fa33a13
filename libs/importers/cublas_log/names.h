#pragma once
// The names and times that logs of cuBLAS and cuBLASLt write.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace llmprof::importers::cublas {

// "2026-11-15T19:25:55" or with a space; nullopt if it is no time.
std::optional<std::int64_t> second_of(std::string_view text);
std::optional<std::int64_t> integer(std::string_view text);  // the whole text

// The names llmprof uses for those of the logs: "R_16BF" and "CUDA_R_16BF" -> "bfloat16". Unknown ones as they are.
std::string type_name(std::string_view text);
std::string compute_name(std::string_view text);   // "COMPUTE_32F_FAST_TF32" -> "tf32"
std::string epilogue_name(std::string_view text);  // "EPILOGUE_GELU_BIAS" -> "gelu_bias"
char transpose_name(std::string_view text);        // "CUBLAS_OP_T(1)", "OP_T" -> 't'
std::string type_of_letter(char letter);           // 'S' -> "float32"; "" if it is none

}  // namespace llmprof::importers::cublas
