#include <algorithm>
#include <charconv>
#include <utility>

#include "base/strings.h"
#include "importers/chrome_json/operators.h"

namespace llmprof::importers::chrome_json {
namespace {

constexpr std::size_t kMaxInputs = 16, kMaxDims = 16;
constexpr std::int64_t kMaxSide = std::int64_t{1} << 40;
constexpr double kMaxProduct = 4e18;  // m n k batch

using Dims = std::vector<std::vector<std::int64_t>>;

constexpr std::pair<std::string_view, std::string_view> kTypes[] = {
    {"c10::BFloat16", "bfloat16"},
    {"c10::Half", "float16"},
    {"float", "float32"},
    {"double", "float64"},
    {"signed char", "int8"},
    {"unsigned char", "uint8"},
    {"int", "int32"},
    {"long int", "int64"},
    {"long", "int64"},
    {"c10::Float8_e4m3fn", "float8_e4m3"},
    {"c10::Float8_e4m3fnuz", "float8_e4m3"},
    {"c10::Float8_e5m2", "float8_e5m2"},
    {"c10::Float8_e5m2fnuz", "float8_e5m2"},
    {"c10::Float4_e2m1fn_x2", "float4_e2m1"},
    {"c10::complex<float>", "complex64"},
    {"c10::complex<double>", "complex128"},
};

// Where A and B stand among the inputs, and what shapes they have.
enum class Form : std::uint8_t {
  kPlain,    // [.., m, k] x [.., k, n]
  kLinear,   // [.., k] x [n, k]
  kVector,   // [m, k] x [k]
  kGrouped,  // [rows, k] x [groups, k, n]: every row with the matrix of its group
};

struct ProductOp {
  std::string_view name;
  std::uint8_t a = 0, b = 1;
  Form form = Form::kPlain;
};

constexpr ProductOp kProductOps[] = {
    {"aten::mm", 0, 1, Form::kPlain},
    {"aten::addmm", 1, 2, Form::kPlain},
    {"aten::addmm_", 1, 2, Form::kPlain},
    {"aten::_addmm_activation", 1, 2, Form::kPlain},
    {"aten::bmm", 0, 1, Form::kPlain},
    {"aten::baddbmm", 1, 2, Form::kPlain},
    {"aten::baddbmm_", 1, 2, Form::kPlain},
    {"aten::matmul", 0, 1, Form::kPlain},
    {"aten::linear", 0, 1, Form::kLinear},
    {"aten::mv", 0, 1, Form::kVector},
    {"aten::addmv", 1, 2, Form::kVector},
    {"aten::addmv_", 1, 2, Form::kVector},
    {"aten::_int_mm", 0, 1, Form::kPlain},
    {"aten::_scaled_mm", 0, 1, Form::kPlain},
    {"aten::_scaled_mm_v2", 0, 1, Form::kPlain},
    {"aten::_grouped_mm", 0, 1, Form::kGrouped},
    {"aten::_scaled_grouped_mm", 0, 1, Form::kGrouped},
    {"aten::_scaled_grouped_mm_v2", 0, 1, Form::kGrouped},
    {"_C::cutlass_scaled_mm", 1, 2, Form::kPlain},
};

enum class Order : std::uint8_t {
  kHeadsFirst,
  kTokensFirst
};  // [batch, heads, tokens, size] or [batch, tokens, heads, size]

struct AttentionOp {
  std::string_view name;
  Order order = Order::kHeadsFirst;
  std::uint8_t causal = 0;  // input that says it
};

constexpr AttentionOp kAttentionOps[] = {
    {"aten::scaled_dot_product_attention", Order::kHeadsFirst, 5},
    {"aten::_scaled_dot_product_flash_attention", Order::kHeadsFirst, 4},
    {"aten::_scaled_dot_product_flash_attention_for_cpu", Order::kHeadsFirst, 4},
    {"aten::_scaled_dot_product_efficient_attention", Order::kHeadsFirst, 6},
    {"aten::_scaled_dot_product_cudnn_attention", Order::kHeadsFirst, 6},
    {"aten::_scaled_dot_product_fused_attention_overrideable", Order::kHeadsFirst, 5},
    {"aten::_cudnn_attention_forward", Order::kHeadsFirst, 10},
    {"aten::_flash_attention_forward", Order::kTokensFirst, 8},
    {"aten::_efficient_attention_forward", Order::kTokensFirst, 9},
    {"flash_attn::_flash_attn_forward", Order::kTokensFirst, 5},
};

template <class Table>
const auto* find_op(const Table& table, std::string_view name) {
  const auto* const found =
      std::find_if(std::begin(table), std::end(table), [&](const auto& op) { return op.name == name; });
  return found == std::end(table) ? nullptr : found;
}

bool sides_ok(const Product& p) {
  for (const std::int64_t side : {p.m, p.n, p.k, p.batch}) {
    if (side <= 0 || side > kMaxSide) return false;
  }
  return static_cast<double>(p.m) * static_cast<double>(p.n) * static_cast<double>(p.k) * static_cast<double>(p.batch) <
         kMaxProduct;
}

// All dimensions but the last `kept` multiplied; 0 if that is too much.
std::int64_t leading(const std::vector<std::int64_t>& dims, std::size_t kept) {
  std::int64_t product = 1;
  for (std::size_t i = 0; i + kept < dims.size(); ++i) {
    if (dims[i] <= 0 || dims[i] > kMaxSide || product > kMaxSide / dims[i]) return 0;
    product *= dims[i];
  }
  return product;
}

std::optional<Product> plain(const std::vector<std::int64_t>& a, const std::vector<std::int64_t>& b) {
  if (a.size() < 2 || b.size() < 2 || a.back() != b[b.size() - 2]) return std::nullopt;
  Product p{.m = a[a.size() - 2], .n = b.back(), .k = a.back()};
  if (b.size() == 2) {
    p.m = leading(a, 1);
  } else {
    p.batch = leading(b, 2);
    if (leading(a, 2) != p.batch) return std::nullopt;  // spread over one another: what was computed depends
  }
  return p;
}

std::optional<Product> grouped(const std::vector<std::int64_t>& a, const std::vector<std::int64_t>& b) {
  if (a.size() < 2 || a.size() > 3 || b.size() < 2 || b.size() > 3 || a.back() != b[b.size() - 2]) return std::nullopt;
  Product p{.m = a[a.size() - 2], .n = b.back(), .k = a.back()};
  if (a.size() == 3 && b.size() == 3) {
    if (a[0] != b[0]) return std::nullopt;
    p.batch = a[0];
  }
  return p;
}

std::optional<Product> of_form(Form form, const std::vector<std::int64_t>& a, const std::vector<std::int64_t>& b) {
  if (form == Form::kPlain) return plain(a, b);
  if (form == Form::kGrouped) return grouped(a, b);
  if (form == Form::kVector) {
    if (a.size() != 2 || b.size() != 1 || a[1] != b[0]) return std::nullopt;
    return Product{.m = a[0], .n = 1, .k = a[1]};
  }
  if (a.empty() || b.size() != 2 || a.back() != b[1]) return std::nullopt;
  return Product{.m = leading(a, 1), .n = b[0], .k = b[1], .transpose_b = 't'};
}

// Of a matrix whose columns stand together in memory.
bool is_transposed(const Dims& strides, std::size_t input) {
  if (input >= strides.size() || strides[input].size() < 2) return false;
  const std::vector<std::int64_t>& s = strides[input];
  return s[s.size() - 2] == 1 && s.back() != 1;
}

// c10::ScalarType by its number.
std::string_view scalar_type(std::string_view number) {
  if (number == "5") return "float16";
  if (number == "6") return "float32";
  return number == "15" ? "bfloat16" : "";
}

std::string_view at(const std::vector<std::string_view>& texts, std::size_t i) {
  return i < texts.size() ? texts[i] : std::string_view{};
}

std::string_view type_c_of(std::string_view op, std::string_view type_a, const Arguments& args) {
  if (op == "aten::_int_mm") return "int32";
  if (op == "aten::_scaled_mm") return scalar_type(at(parse_texts(args.concrete), 6));
  return !base::contains(op, "scaled") ? type_a : std::string_view{};
}

}  // namespace

Dims parse_dims(std::string_view json) {
  Dims all;
  std::size_t depth = 0;
  while (!json.empty() && all.size() <= kMaxInputs) {
    const char c = json.front();
    if (c == '[') {
      if (++depth == 2) all.emplace_back();
    } else if (c == ']') {
      if (depth <= 1) break;
      --depth;
    } else if (base::is_digit(c) || c == '-') {
      std::int64_t value = 0;
      const auto [end, error] = std::from_chars(json.data(), json.data() + json.size(), value);
      if (error != std::errc{}) return {};
      if (depth == 2 && all.back().size() < kMaxDims) all.back().push_back(value);
      json.remove_prefix(static_cast<std::size_t>(end - json.data()));
      continue;
    } else if (c != ',' && !base::is_space(c)) {
      return {};
    }
    json.remove_prefix(1);
  }
  return all;
}

std::vector<std::string_view> parse_texts(std::string_view json) {
  std::vector<std::string_view> texts;
  while (texts.size() < kMaxInputs) {
    const std::size_t begin = json.find('"');
    if (begin == std::string_view::npos) break;
    std::size_t end = begin + 1;
    while (end < json.size() && json[end] != '"') end += json[end] == '\\' ? 2 : 1;
    if (end >= json.size()) break;
    texts.push_back(json.substr(begin + 1, end - begin - 1));
    json.remove_prefix(end + 1);
  }
  return texts;
}

std::string_view type_name(std::string_view torch) {
  for (const auto& [theirs, ours] : kTypes) {
    if (theirs == torch) return ours;
  }
  return {};
}

bool may_be_product(std::string_view op) { return find_op(kProductOps, op) != nullptr; }

bool may_be_attention(std::string_view op) { return find_op(kAttentionOps, op) != nullptr; }

std::optional<Product> product_of(std::string_view op, const Arguments& args) {
  const ProductOp* const known = find_op(kProductOps, op);
  if (known == nullptr) return std::nullopt;
  const Dims dims = parse_dims(args.dims);
  if (dims.size() <= known->b) return std::nullopt;
  std::optional<Product> product = of_form(known->form, dims[known->a], dims[known->b]);
  if (!product || !sides_ok(*product)) return std::nullopt;
  const std::vector<std::string_view> types = parse_texts(args.types);
  product->type_a = type_name(at(types, known->a));
  product->type_b = type_name(at(types, known->b));
  product->type_c = type_c_of(op, product->type_a, args);
  const Dims strides = parse_dims(args.strides);
  if (is_transposed(strides, known->a)) product->transpose_a = 't';
  if (known->form == Form::kLinear) {
    product->transpose_b = is_transposed(strides, known->b) ? 'n' : 't';
  } else if (is_transposed(strides, known->b)) {
    product->transpose_b = 't';
  }
  return product;
}

std::optional<Attention> attention_of(std::string_view op, const Arguments& args) {
  const AttentionOp* const known = find_op(kAttentionOps, op);
  if (known == nullptr) return std::nullopt;
  const Dims dims = parse_dims(args.dims);
  if (dims.size() < 3 || dims[0].size() != 4 || dims[1].size() != 4 || dims[2].size() != 4) return std::nullopt;
  const std::size_t heads = known->order == Order::kHeadsFirst ? 1 : 2, tokens = 3 - heads;
  const Attention attention{.batch = dims[0][0],
                            .heads = dims[0][heads],
                            .kv_heads = dims[1][heads],
                            .queries = dims[0][tokens],
                            .keys = dims[1][tokens],
                            .head_size = dims[0][3],
                            .value_size = dims[2][3],
                            .type = type_name(at(parse_texts(args.types), 0))};
  for (const std::int64_t side : {attention.batch, attention.heads, attention.kv_heads, attention.queries,
                                  attention.keys, attention.head_size, attention.value_size}) {
    if (side <= 0 || side > kMaxSide) return std::nullopt;
  }
  if (dims[1][3] != attention.head_size || dims[2][tokens] != attention.keys) return std::nullopt;
  Attention result = attention;
  const std::string_view causal = at(parse_texts(args.concrete), known->causal);
  if (causal == "True" || causal == "1" || causal == "2") result.causal = true;
  if (causal == "False" || causal == "0") result.causal = false;
  return result;
}

}  // namespace llmprof::importers::chrome_json
