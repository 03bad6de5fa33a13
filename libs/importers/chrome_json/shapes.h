#pragma once
// What an operator of PyTorch multiplies, told from the shapes, types, strides and values of its inputs as Kineto
// writes them: "[[256, 1024], [1024, 32000]]", "["c10::BFloat16", "c10::BFloat16"]".

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "importers/chrome_json/event.h"

namespace llmprof::importers::chrome_json {

// C (m x n) = A (m x k) B (k x n), `batch` times, rows first: 2 m n k batch FLOPs.
struct Product {
  std::int64_t m = 0, n = 0, k = 0, batch = 1;
  std::string_view type_a, type_b, type_c;  // our names; "" if unknown
  char transpose_a = 'n', transpose_b = 'n';
};

struct Attention {
  std::int64_t batch = 0, heads = 0, kv_heads = 0, queries = 0, keys = 0, head_size = 0, value_size = 0;
  std::optional<bool> causal;
  std::string_view type;
};

// Whether the name alone says that it may be one: the rest is only then worth a look.
bool may_be_product(std::string_view op);
bool may_be_attention(std::string_view op);

// nullopt: the shapes were not recorded, or do not fit the operator.
std::optional<Product> product_of(std::string_view op, const Arguments& args);
std::optional<Attention> attention_of(std::string_view op, const Arguments& args);

// "[[2, 3], [], [[4]]]" -> {2, 3}, {}, {}: shapes of tensors; lists of tensors are left empty. At most 16 inputs.
std::vector<std::vector<std::int64_t>> parse_dims(std::string_view json);
// "["float", ""]" -> texts without escapes, as they stand.
std::vector<std::string_view> parse_texts(std::string_view json);
std::string_view type_name(std::string_view torch);  // "c10::BFloat16" -> "bfloat16"; "" if it is none of ours

}  // namespace llmprof::importers::chrome_json
