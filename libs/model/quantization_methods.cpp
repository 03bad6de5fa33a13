// How each method of quantization_config stores a matrix. Bytes of a weight count its share of the scales and zero
// points of its group; scales of whole rows or tensors are left out, as they are less than a thousandth.

#include "model/quantization.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/json.h"
#include "base/strings.h"
#include "base/text_table.h"

namespace llmprof::model {
namespace {

std::string shown(std::string_view text) { return base::shorten(base::printable(text), 40); }

// ---- parts ---------------------------------------------------------------------------------------------------------

struct Scales {
  std::int64_t group = 0;  // weights that share one; 0: so many that it does not matter
  double scale_bytes = 2;  // of one
  double zero_bytes = 0;   // of one zero point
};

Number integers(std::int64_t bits, const Scales& scales) {
  const double overhead =
      scales.group > 0 ? (scales.scale_bytes + scales.zero_bytes) / static_cast<double>(scales.group) : 0;
  return {fmt::format("int{}", bits), static_cast<double>(bits) / 8 + overhead};
}

Number float8(double block = 0) { return {"float8_e4m3", 1 + (block > 0 ? 4 / block : 0)}; }

std::int64_t bits_of(Fields& q, std::string_view key, std::int64_t usual) {
  const std::int64_t bits = q.count_or(key, usual);
  if (!q.error() && (bits < 1 || bits > 16)) {
    q.reject(ErrorCode::kUnsupported, fmt::format("{}: {} bits are not supported", q.path(key), bits));
    return 4;
  }
  return bits;
}

// -1 and null: one for each row.
std::int64_t group_of(Fields& q, std::string_view key, std::int64_t usual) {
  const base::Json* value = q.find(key);
  if (value == nullptr) return q.is_null(key) ? 0 : usual;
  if (value->is_number_integer() && *value == -1) return 0;
  return q.zero_or_more(key, usual);
}

// Rows times columns that share a scale; 0 unless both are given.
double block_of(Fields& q, std::string_view key) {
  const std::vector<std::int64_t> sides = q.counts(key);
  return sides.size() == 2 ? static_cast<double>(sides[0]) * static_cast<double>(sides[1]) : 0;
}

// ---- methods -------------------------------------------------------------------------------------------------------

// GPTQ and AWQ: packed integers; per group a float16 scale and a zero point as wide as a weight.
void read_packed(Fields& q, Quantization& out) {
  const std::int64_t bits = bits_of(q, q.has("bits") ? "bits" : "w_bit", 4);
  const std::int64_t group = group_of(q, q.has("group_size") ? "group_size" : "q_group_size", 128);
  out.weight = integers(bits, {.group = group, .scale_bytes = 2, .zero_bytes = static_cast<double>(bits) / 8});
  if (q.flag_or("lm_head", false))
    q.caveat("lm_head", "its matrix is counted as not quantised: bytes are upper bounds");
  // GPTQModel: exceptions by pattern, "-:" for modules that are left alone.
  const base::Json* dynamic = q.find("dynamic");
  if (dynamic == nullptr || !dynamic->is_object()) return;
  bool others = false;
  for (const auto& [pattern, unused] : dynamic->items()) {
    if (pattern.starts_with("-:")) {
      out.ignore.push_back("re:" + pattern.substr(2));
    } else {
      others = true;
    }
  }
  if (others) q.caveat("dynamic", "modules with types of their own are counted like the others: bytes are rough");
}

// MLX: scale and offset of 16 bits for each group; tables too.
void read_mlx(Fields& q, Quantization& out) {
  const Scales scales{.group = group_of(q, "group_size", 64), .scale_bytes = 2, .zero_bytes = 2};
  out.weight = integers(bits_of(q, "bits", 4), scales);
  q.caveat("bits", "tables and the logits' matrix are counted as not quantised: bytes are upper bounds");
}

// bitsandbytes: blocks of 64 weights share a float32 maximum. Quantised twice, the maxima are 8 bits each and blocks of
// 256 of them share a float32. Eight bits: one scale for each row.
void read_bitsandbytes(Fields& q, Quantization& out) {
  const bool four = q.flag_or("load_in_4bit", q.flag_or("_load_in_4bit", false));
  if (!four) {
    out.weight = {"int8", 1};
    out.arithmetic = "int8";  // but for the outliers, which take a few columns
  } else {
    const bool twice = q.flag_or("bnb_4bit_use_double_quant", false);
    const std::string type = q.text_or("bnb_4bit_quant_type", "fp4");
    out.weight = {type == "nf4" ? "nf4" : "float4_e2m1", 0.5 + (twice ? 1.0 / 64 + 4.0 / (64 * 256) : 4.0 / 64)};
    const std::string compute = q.text_or("bnb_4bit_compute_dtype", "float32");  // BitsAndBytesConfig's default
    if (const std::optional<Number> number = number_of(compute)) out.arithmetic = number->type;
  }
}

// A float32 scale for each block of weight_block_size, or for each tensor or row.
void read_fp8(Fields& q, Quantization& out) {
  out.weight = float8(block_of(q, "weight_block_size"));
  out.arithmetic = out.weight.type;
}

void read_mxfp4(Fields&, Quantization& out) {
  out.weight = *number_of("mxfp4");
  out.only = {"experts"};  // Mxfp4Config converts nothing else
}

struct Group {
  Number weight;
  std::string arithmetic;
  std::vector<std::string> only;
};

// Of QuantizationArgs of compressed-tensors: num_bits and type.
std::string type_of_args(Fields& args) {
  const std::int64_t bits = bits_of(args, "num_bits", 8);
  if (args.text_or("type", "int") == "int") return fmt::format("int{}", bits);
  return bits == 4 ? "float4_e2m1" : bits == 8 ? "float8_e4m3" : fmt::format("float{}", bits);
}

Number number_of_args(Fields& args) {
  Number number{type_of_args(args), static_cast<double>(bits_of(args, "num_bits", 8)) / 8};
  const std::int64_t group = group_of(args, "group_size", 0);
  if (number.type == "float4_e2m1" && group == 16) return *number_of("nvfp4");
  if (number.type == "float4_e2m1" && group == 32) return *number_of("mxfp4");
  if (number.type == "float8_e4m3" && group == 32) return *number_of("mxfp8");
  const double zero = args.flag_or("symmetric", true) ? 0 : number.bytes;
  if (group > 0) number.bytes += (2 + zero) / static_cast<double>(group);
  if (const double block = block_of(args, "block_structure"); block > 0) number.bytes += 4 / block;
  return number;
}

std::optional<Group> read_group(Fields& q, const base::Json& json) {
  Fields group(json, q, "config_groups");
  Group out;
  const base::Json* weights = group.find("weights");
  if (weights == nullptr || !weights->is_object()) return std::nullopt;
  Fields weight_args(*weights, group, "weights");
  out.weight = number_of_args(weight_args);
  const base::Json* inputs = group.find("input_activations");
  if (inputs != nullptr && inputs->is_object()) {
    Fields input_args(*inputs, group, "input_activations");
    out.arithmetic = type_of_args(input_args);
    q.adopt(input_args);
  }
  for (const std::string& target : group.texts("targets")) {
    if (target != "Linear") out.only.push_back(target);
  }
  q.adopt(weight_args);
  q.adopt(group);
  return out;
}

void read_groups(Fields& q, Quantization& out) {
  std::vector<Group> groups;
  const base::Json* json = q.find("config_groups");
  if (json != nullptr && json->is_object()) {
    for (const auto& [name, group] : json->items()) {
      if (!group.is_object()) continue;
      if (std::optional<Group> read = read_group(q, group)) groups.push_back(std::move(*read));
    }
  }
  if (groups.empty()) {
    q.caveat("config_groups", "no group with weights: matrices are counted as not quantised");
    return;
  }
  const auto widest = std::ranges::max_element(groups, {}, [](const Group& group) { return group.weight.bytes; });
  out.weight = widest->weight;
  out.arithmetic = widest->arithmetic;
  const bool mixed = std::ranges::any_of(groups, [&](const Group& group) { return group.weight != widest->weight; });
  if (mixed) q.caveat("config_groups", "several types: the widest is taken for all, bytes are upper bounds");
  if (std::ranges::any_of(groups, [](const Group& group) { return group.only.empty(); })) return;
  for (const Group& group : groups) std::ranges::copy(group.only, std::back_inserter(out.only));
}

void read_compressed_tensors(Fields& q, Quantization& out) {
  read_groups(q, out);
  const base::Json* sparsity = q.find("sparsity_config");
  if (sparsity != nullptr && sparsity->is_object() && !sparsity->empty()) {
    q.caveat("sparsity_config", "zeros are counted as weights: bytes and FLOPs are upper bounds");
  }
}

// What NVIDIA's Model Optimizer calls its formats.
void read_modelopt(Fields& q, Quantization& out) {
  const std::string algorithm = lower_case(q.text_or("quant_algo", ""));
  const std::int64_t group = group_of(q, "group_size", 128);
  if (base::contains(algorithm, "nvfp4")) {
    out.weight = *number_of("nvfp4");
    out.arithmetic = "float4_e2m1";
  } else if (base::contains(algorithm, "mxfp4")) {
    out.weight = *number_of("mxfp4");
  } else if (base::contains(algorithm, "w4a8")) {
    out.weight = integers(4, {.group = group});
    out.arithmetic = "float8_e4m3";
  } else if (base::contains(algorithm, "w4") || base::contains(algorithm, "int4")) {
    out.weight = integers(4, {.group = group});
  } else if (base::contains(algorithm, "int8") || base::contains(algorithm, "w8a8") ||
             base::contains(algorithm, "w8a16")) {
    out.weight = {"int8", 1};
    if (!base::contains(algorithm, "a16")) out.arithmetic = "int8";
  } else if (base::contains(algorithm, "fp8")) {
    const bool blocks = base::contains(algorithm, "pb") || base::contains(algorithm, "block");
    out.weight = float8(blocks ? 128 * 128 : 0);
    if (!base::contains(algorithm, "wo")) out.arithmetic = out.weight.type;
  } else if (q.has("config_groups")) {
    read_groups(q, out);
  } else {
    q.caveat("quant_algo",
             fmt::format("\"{}\" is not understood: matrices are counted as not quantised", shown(algorithm)));
  }
}

// AMD's Quark: {"weight": {"dtype": "fp8_e4m3"}, "input_tensors": …} for the whole model.
void read_quark(Fields& q, Quantization& out) {
  const base::Json* global = q.find("global_quant_config");
  const auto part = [&](const char* key) -> const base::Json* {
    if (global == nullptr || !global->is_object()) return nullptr;
    const auto found = global->find(key);
    return found != global->end() && found->is_object() ? &*found : nullptr;
  };
  const base::Json* weight = part("weight");
  if (weight == nullptr) {
    q.caveat("global_quant_config", "no weight in it: matrices are counted as not quantised");
    return;
  }
  Fields args(*weight, q, "global_quant_config.weight");
  const std::string type = args.text_or("dtype", "");
  if (const std::optional<Number> number = number_of(type)) out.weight = *number;
  const std::int64_t group = group_of(args, "group_size", 0);
  if (out.weight.bytes < 2 && group > 0)
    out.weight.bytes += (out.weight.type == "float4_e2m1" ? 1.0 : 2.0) / static_cast<double>(group);
  if (const base::Json* inputs = part("input_tensors")) {
    Fields input(*inputs, q, "global_quant_config.input_tensors");
    if (const std::optional<Number> number = number_of(input.text_or("dtype", ""))) out.arithmetic = number->type;
    q.adopt(input);
  }
  q.adopt(args);
  const base::Json* layers = q.find("layer_quant_config");
  if (layers != nullptr && !layers->empty()) {
    q.caveat("layer_quant_config", "modules with types of their own are counted like the others: bytes are rough");
  }
}

// torchao: the name of a configuration, or {"default": {"_type": name, "_data": {…}}}.
void read_torchao(Fields& q, Quantization& out) {
  const base::Json* type = q.find("quant_type");
  std::string name = type != nullptr && type->is_string() ? type->get<std::string>() : "";
  std::int64_t group = 0;
  const base::Json* data = q.find("quant_type_kwargs");
  if (type != nullptr && type->is_object() && type->contains("default") && (*type)["default"].is_object()) {
    const base::Json& inner = (*type)["default"];
    if (inner.contains("_type") && inner["_type"].is_string()) name = inner["_type"].get<std::string>();
    if (inner.contains("_data")) data = &inner["_data"];
  }
  if (data != nullptr && data->is_object()) {
    Fields args(*data, q, "quant_type");
    group = group_of(args, "group_size", 0);
    q.adopt(args);
  }
  name = lower_case(name);
  std::erase(name, '_');
  const bool four = base::contains(name, "int4weight"), dynamic = base::contains(name, "dynamicactivation");
  if (base::contains(name, "float8")) {
    out.weight = float8();
    if (dynamic || base::contains(name, "static")) out.arithmetic = out.weight.type;
  } else if (four || base::contains(name, "int8weight")) {
    out.weight = integers(
        four ? 4 : 8, {.group = four && group == 0 ? 128 : group, .scale_bytes = 2, .zero_bytes = four ? 2.0 : 0.0});
    if (dynamic) out.arithmetic = "int8";
  } else {
    q.caveat("quant_type", fmt::format("\"{}\" is not understood: matrices are counted as not quantised", shown(name)));
  }
}

// HQQ, quanto, EETQ, BitNet, AQLM…: what they say about bits.
void read_plain_bits(Fields& q, Quantization& out) {
  const std::string weights = q.text_or("weights", "");  // quanto
  const base::Json* inner = q.find("quant_config");      // HQQ: {"weight_quant_params": {"nbits", "group_size"}}
  const auto params =
      inner != nullptr && inner->is_object() ? inner->find("weight_quant_params") : base::Json::const_iterator();
  if (inner != nullptr && inner->is_object() && params != inner->end() && params->is_object()) {
    Fields args(*params, q, "quant_config.weight_quant_params");
    out.weight = integers(bits_of(args, "nbits", 4),
                          {.group = group_of(args, "group_size", 64), .scale_bytes = 2, .zero_bytes = 2});
    q.adopt(args);
  } else if (const std::optional<Number> number = number_of(weights)) {
    out.weight = *number;
  } else if (out.method == "eetq") {
    out.weight = {"int8", 1};
  } else if (out.method == "bitnet") {
    out.weight = {"int2", 0.25};  // three values, packed four to a byte
    out.arithmetic = "int8";
  } else if (q.has("bits") || q.has("nbits")) {
    out.weight = integers(bits_of(q, q.has("bits") ? "bits" : "nbits", 8), {.group = group_of(q, "group_size", 0)});
  } else {
    q.caveat("quant_method",
             fmt::format("\"{}\" is not understood: matrices are counted as not quantised, bytes are upper bounds",
                         shown(out.method)));
  }
}

struct Method {
  std::string_view name;
  void (*read)(Fields& q, Quantization& out);
};
constexpr std::array kMethods{
    Method{"fp8", read_fp8},
    Method{"fbgemm_fp8", read_fp8},
    Method{"gptq", read_packed},
    Method{"awq", read_packed},
    Method{"auto-round", read_packed},
    Method{"mlx", read_mlx},
    Method{"bitsandbytes", read_bitsandbytes},
    Method{"compressed-tensors", read_compressed_tensors},
    Method{"mxfp4", read_mxfp4},
    Method{"torchao", read_torchao},
    Method{"modelopt", read_modelopt},
    Method{"modelopt_fp4", read_modelopt},
    Method{"quark", read_quark},
};

}  // namespace

std::string lower_case(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c; });
  return text;
}

Number scheme_number(Fields& args) { return number_of_args(args); }

void read_method(Fields& q, Quantization& out) {
  std::string name = out.method;
  std::ranges::replace(name, '_', '-');
  const auto known = std::ranges::find_if(
      kMethods, [&](const Method& method) { return method.name == out.method || method.name == name; });
  (known != kMethods.end() ? known->read : read_plain_bits)(q, out);
}

}  // namespace llmprof::model
