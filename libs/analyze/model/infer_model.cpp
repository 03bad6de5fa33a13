#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <numeric>
#include <optional>
#include <set>

#include "analyze/model/detect_model.h"
#include "model/model.h"
#include "model/shard.h"
#include "model/zoo/zoo.h"

namespace llmprof::analyze {

namespace {

constexpr std::size_t kMostOfLayer = 32;        // products
constexpr std::size_t kMostBehind = 3;          // products behind the layers
constexpr std::int64_t kLeastVocabulary = 128;  // fewer outputs are classes
constexpr double kMostOfHead = 0.02;            // of the FLOPs of the layers

std::vector<MatrixSize> sizes_of(const std::vector<PassProduct>& pass) {
  std::vector<MatrixSize> sizes;
  for (const PassProduct& product : pass) sizes.push_back(product.size);
  return sizes;
}

struct Period {
  std::size_t products = 0, times = 0;  // of a layer; layers
};

// The shortest beginning that repeats and leaves few products behind it.
std::optional<Period> repeated_layer(const std::vector<MatrixSize>& sizes) {
  for (std::size_t period = 4; period <= kMostOfLayer && 2 * period <= sizes.size(); ++period) {
    std::size_t same = 0;
    while (same + period < sizes.size() && sizes[same] == sizes[same + period]) ++same;
    const std::size_t times = 1 + same / period;
    if (times >= 2 && sizes.size() - times * period <= kMostBehind) return Period{period, times};
  }
  return std::nullopt;
}

// A layer as a list of products, adapters taken out of it.
struct LayerProducts {
  std::vector<MatrixSize> products;
  std::map<std::size_t, std::int64_t> ranks;  // by product
};

// Behind a product of the same input, a narrow one and one that is as wide again.
LayerProducts without_adapters(const std::vector<MatrixSize>& sizes) {
  constexpr std::int64_t kNarrow = 8;  // times
  LayerProducts layer;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    layer.products.push_back(sizes[i]);
    if (i + 2 >= sizes.size()) continue;
    const auto [in, out] = sizes[i];
    const std::int64_t rank = sizes[i + 1].second;
    const bool narrow = rank * kNarrow <= std::min(in, out);
    if (!narrow || sizes[i + 1] != MatrixSize{in, rank} || sizes[i + 2] != MatrixSize{rank, out}) continue;
    layer.ranks[layer.products.size() - 1] = rank;
    i += 2;
  }
  return layer;
}

struct Parsed {
  ShapesModel model;
  std::vector<std::string> names;  // of the layer's products
};

// q, k, v, or fused with each other; then the product that leads back to the hidden size.
std::optional<Parsed> parse_attention(const std::vector<MatrixSize>& p, std::size_t inputs, std::int64_t hidden) {
  if (p.size() <= inputs) return std::nullopt;
  Parsed out;
  ShapesModel& m = out.model;
  m.hidden = hidden;
  m.q = p[inputs].first;
  if (p[inputs].second != hidden) return std::nullopt;
  for (std::size_t i = 0; i < inputs; ++i) {
    if (p[i].first != hidden) return std::nullopt;
  }
  if (inputs == 1) {
    if (p[0].second <= m.q || (p[0].second - m.q) % 2 != 0) return std::nullopt;
    m.kv = (p[0].second - m.q) / 2;
    out.names = {"self_attn.qkv_proj"};
  } else if (inputs == 2) {
    if (p[0].second != m.q || p[1].second % 2 != 0) return std::nullopt;
    m.kv = p[1].second / 2;
    out.names = {"self_attn.q_proj", "self_attn.kv_proj"};
  } else {
    if (p[0].second != m.q || p[1].second != p[2].second) return std::nullopt;
    m.kv = p[1].second;
    out.names = {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"};
  }
  if (m.kv <= 0 || m.q % m.kv != 0) return std::nullopt;
  out.names.emplace_back("self_attn.o_proj");
  return out;
}

// up and down; gate, up and down; gate and up fused, and down.
bool parse_mlp(const std::vector<MatrixSize>& p, std::size_t from, Parsed& out) {
  ShapesModel& m = out.model;
  const std::size_t left = p.size() - from;
  if (left < 2 || left > 3) return false;
  const MatrixSize& down = p.back();
  m.width = down.first;
  if (down.second != m.hidden || p[from].first != m.hidden) return false;
  if (left == 3) {
    if (p[from] != p[from + 1] || p[from].second != m.width) return false;
    m.gated = true;
    out.names.insert(out.names.end(), {"mlp.gate_proj", "mlp.up_proj"});
  } else {
    m.gated = p[from].second == 2 * m.width;
    if (!m.gated && p[from].second != m.width) return false;
    out.names.emplace_back(m.gated ? "mlp.gate_up_proj" : "mlp.up_proj");
  }
  out.names.emplace_back("mlp.down_proj");
  return true;
}

// The one way to read a layer; none if there are several.
std::optional<Parsed> parse_layer(const LayerProducts& layer) {
  std::optional<Parsed> found;
  for (const std::size_t inputs : {1, 2, 3}) {
    std::optional<Parsed> parsed = parse_attention(layer.products, inputs, layer.products.front().first);
    if (!parsed || !parse_mlp(layer.products, inputs + 1, *parsed)) continue;
    if (found) return std::nullopt;
    found = std::move(parsed);
  }
  if (!found) return found;
  for (const auto& [product, rank] : layer.ranks) found->model.adapters[found->names[product]] = rank;
  return found;
}

// Attention, and behind it one narrow product: it chooses experts, whose products are not there.
std::string why_not(const LayerProducts& layer) {
  if (layer.products.size() < 3) return "";
  const auto [in, out] = layer.products.back();
  for (const std::size_t inputs : {1, 2, 3}) {
    if (layer.products.size() != inputs + 2 || in != layer.products.front().first || 8 * out > in) continue;
    if (!parse_attention(layer.products, inputs, in)) continue;
    return fmt::format("its layers choose among {} experts, whose products are not made by calls of a BLAS library",
                       out);
  }
  return "";
}

double product_flops(const PassProduct& product) {
  return model::gemm_flops(product.rows, product.size.second, product.size.first, 1);
}

// Logits, or a small head: what pools and classifies.
bool read_behind(const std::vector<PassProduct>& pass, std::size_t layers, bool trains, ShapesModel& model) {
  if (layers == pass.size()) return false;  // nothing tells where a pass ends
  const std::int64_t rows = pass.front().rows;
  const PassProduct& first = pass[layers];
  const bool wide = first.size.second >= (trains ? kLeastVocabulary : 4 * model.hidden);
  if (layers + 1 == pass.size() && first.size.first == model.hidden && wide && (!trains || first.rows == rows)) {
    model.vocab = first.size.second;
    return true;
  }
  double head = 0, all = 0;
  for (std::size_t i = 0; i < pass.size(); ++i) {
    all += product_flops(pass[i]);
    if (i < layers) continue;
    head += product_flops(pass[i]);
    model.head.push_back(pass[i].size);
  }
  // One row of each sequence is pooled by a square matrix: so do encoders, which see whole sequences at once.
  model.causal = first.size != MatrixSize{model.hidden, model.hidden} || first.rows >= rows;
  return trains && first.size.first == model.hidden && head <= kMostOfHead * all;
}

std::string of_heads(const ShapesModel& m) {
  if (m.head_dim == 0) return "heads unknown";
  return fmt::format("heads of {} by the names of its attention kernels", m.head_dim);
}

}  // namespace

Inferred infer_model(const std::vector<PassProduct>& pass, bool trains) {
  const std::vector<MatrixSize> sizes = sizes_of(pass);
  const std::optional<Period> repeated = repeated_layer(sizes);
  if (!repeated) return {};
  const auto first = sizes.begin(), end = first + static_cast<std::ptrdiff_t>(repeated->products);
  const LayerProducts layer = without_adapters({first, end});
  std::optional<Parsed> parsed = parse_layer(layer);
  if (!parsed) return {std::nullopt, why_not(layer)};
  const std::size_t layers = repeated->products * repeated->times;
  for (std::size_t i = 0; i < layers; ++i) {
    if (pass[i].rows != pass.front().rows) return {};
  }
  ShapesModel& model = parsed->model;
  model.layers = static_cast<std::int64_t>(repeated->times);
  if (!read_behind(pass, layers, trains, model)) return {};
  return {std::move(model), ""};
}

double explained(const ShapesModel& model, const std::vector<SizedCalls>& calls) {
  std::set<MatrixSize> known(model.head.begin(), model.head.end());
  const std::int64_t h = model.hidden;
  known.insert({{h, model.q}, {h, model.kv}, {h, 2 * model.kv}, {h, model.q + 2 * model.kv}, {model.q, h}});
  known.insert({{h, model.width}, {h, 2 * model.width}, {model.width, h}, {h, model.vocab}});
  for (const auto& [op, rank] : model.adapters) {
    for (const std::int64_t width : {h, model.q, model.kv, model.width, model.q + 2 * model.kv, 2 * model.width}) {
      known.insert({{width, rank}, {rank, width}});
    }
  }
  const auto is_known = [&](std::int64_t a, std::int64_t b) {
    return known.contains({a, b}) || known.contains({b, a});
  };
  double all = 0, explained = 0;
  for (const SizedCalls& c : calls) {
    const double flops = model::gemm_flops(c.m, c.n, c.k, c.calls);
    all += flops;
    if (is_known(c.k, c.m) || is_known(c.k, c.n) || is_known(c.m, c.n)) explained += flops;
  }
  return all > 0 ? explained / all : 0;
}

std::int64_t head_dim_of_kernel(std::string_view name) {
  const auto number_at = [&](std::size_t at) {
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(name.data() + at, name.data() + name.size(), value);
    return std::pair(error == std::errc{} ? value : 0, static_cast<std::size_t>(end - name.data()));
  };
  const auto sensible = [](std::int64_t value) { return value >= 16 && value <= 512 && value % 8 == 0 ? value : 0; };
  // cuDNN writes its tile, the last number of which is the head: "…_sdpa_sm90_flash_fprop_…_64x128x64_…".
  if (const std::size_t sdpa = name.find("_sdpa_"); sdpa != name.npos) {
    for (std::size_t x = name.find('x', sdpa); x != name.npos; x = name.find('x', x + 1)) {
      const auto [middle, second] = number_at(x + 1);
      if (middle == 0 || second >= name.size() || name[second] != 'x') continue;
      return sensible(number_at(second + 1).first);
    }
  }
  // FlashAttention's traits begin with it.
  for (const std::string_view word : {"fwd_kernel_traits<", "bwd_kernel_traits<"}) {
    if (const std::size_t found = name.find(word); found != name.npos)
      return sensible(number_at(found + word.size()).first);
  }
  return 0;
}

std::string ShapesModel::config() const {
  // Heads that nothing tells: any size divides the same work.
  std::int64_t dim = head_dim;
  if (dim == 0 || q % dim != 0 || kv % dim != 0) {
    dim = kv;
    for (const std::int64_t usual : {128, 64, 32}) {
      if (kv % usual == 0 && dim == kv) dim = usual;
    }
  }
  std::string ranks;
  for (const auto& [op, rank] : adapters) ranks += fmt::format("{}\"{}\": {}", ranks.empty() ? "" : ", ", op, rank);
  std::string json = fmt::format(
      R"({{"model_type": "inferred", "num_hidden_layers": {}, "hidden_size": {}, "num_attention_heads": {}, )"
      R"("num_key_value_heads": {}, "head_dim": {}, "intermediate_size": {}, "gated": {}, "vocab_size": {}, )"
      R"("tie_word_embeddings": {}, "bias": {}, "rope": {}, "causal": {}, "frozen": {}, "heads_known": {})",
      layers, hidden, q / dim, kv / dim, dim, width, gated, vocab, tied.value_or(true), bias, rope, causal, frozen,
      head_dim > 0);
  if (!ranks.empty()) json += fmt::format(R"(, "adapters": {{{}}})", ranks);
  if (!type.empty()) json += fmt::format(R"(, "dtype": "{}")", type);
  return json + "}";
}

std::string ShapesModel::words() const {
  std::string out = fmt::format("{} layers, hidden {}", layers, hidden);
  if (q != hidden || kv != q) out += fmt::format(", queries {}, keys and values {}", q, kv);
  out += fmt::format(", FFN {} ({}gated)", width, gated ? "" : "not ");
  out += vocab > 0 ? fmt::format(", vocabulary {}", vocab) : ", no logits over a vocabulary";
  if (!adapters.empty()) {
    std::string names;
    for (const auto& [op, rank] : adapters) names += (names.empty() ? "" : ", ") + op;
    out += fmt::format(", adapters of rank {} on {}", adapters.begin()->second, names);
    if (frozen) out += ", which alone are trained";
  }
  return fmt::format("{}; {}", out, of_heads(*this));
}

// Built-in models recognised by the sizes of their matrices.

namespace {

constexpr double kTolerance = 0.1;  // between the calls of layers and those of the logits: prompts differ in rows

enum class Fit : std::uint8_t { kNo, kNear, kYes };

struct Needed {
  double forward = 0;   // products of this size in one pass
  double backward = 0;  // those that make the gradients of inputs: the matrix the other way round
};

// How often the passes were made whose products the calls are, forward and backward: every size says one equation. A
// program that only goes forward makes no call of the second kind. nullopt: no such numbers explain the calls.
std::optional<double> forward_passes(const std::map<MatrixSize, Needed>& needed, const SizeCounts& counts) {
  double ff = 0, fb = 0, bb = 0, fc = 0, bc = 0;
  for (const auto& [size, per_pass] : needed) {
    const auto called = counts.find(size);
    if (called == counts.end()) return std::nullopt;
    const double calls = called->second;
    ff += per_pass.forward * per_pass.forward, fb += per_pass.forward * per_pass.backward;
    bb += per_pass.backward * per_pass.backward;
    fc += per_pass.forward * calls, bc += per_pass.backward * calls;
  }
  const auto explains = [&](double forward, double backward) {
    return forward > 0 && backward >= 0 && backward <= forward * (1 + 1e-9) &&
           std::ranges::all_of(needed, [&](const auto& entry) {
             const double calls = counts.at(entry.first);
             return std::abs(forward * entry.second.forward + backward * entry.second.backward - calls) < 1e-6 * calls;
           });
  };
  if (ff > 0 && explains(fc / ff, 0)) return fc / ff;
  const double determinant = ff * bb - fb * fb;
  if (needed.size() < 3 || std::abs(determinant) < 1e-9) return std::nullopt;  // two equations always agree
  const double forward = (fc * bb - bc * fb) / determinant, backward = (bc * ff - fc * fb) / determinant;
  return explains(forward, backward) ? std::optional(forward) : std::nullopt;
}

// Calls per product. Those of the layers must be made equally often; experts are called as tokens choose them.
Fit fit(const Products& products, const SizeCounts& counts) {
  std::map<MatrixSize, Needed> needed;
  for (const Slot& slot : products.slots) {
    if (slot.layer >= 0 && !slot.expert) needed[slot.size].forward += 1;
    if (slot.expert && !counts.contains(slot.size)) return Fit::kNo;
  }
  for (const Slot& slot : products.slots) {
    const auto back = needed.find({slot.size.second, slot.size.first});
    if (back != needed.end() && !slot.expert) back->second.backward += 1;
  }
  const std::optional<double> times = forward_passes(needed, counts);
  if (!times) return Fit::kNo;
  const auto logits =
      std::find_if(products.slots.begin(), products.slots.end(), [](const Slot& slot) { return slot.sampled; });
  if (logits == products.slots.end() || needed.contains(logits->size)) return Fit::kNear;
  const auto called = counts.find(logits->size);
  if (called == counts.end()) return Fit::kNear;
  return std::abs(static_cast<double>(called->second) / *times - 1) <= kTolerance ? Fit::kYes : Fit::kNear;
}

std::vector<std::pair<MatrixSize, std::int32_t>> layout_of(const Products& products) {
  std::vector<std::pair<MatrixSize, std::int32_t>> layout;
  for (const Slot& slot : products.slots) layout.emplace_back(slot.size, slot.layer);
  return layout;
}

Recognised recognise(const SizeCounts& counts, const std::set<std::int64_t>& inputs, std::int64_t ranks) {
  Recognised out;
  std::vector<std::pair<MatrixSize, std::int32_t>> layout;
  for (const model::ZooEntry& entry : model::zoo()) {
    auto config = model::config_of(entry);
    if (!config || !inputs.contains(config->hidden)) continue;
    if (ranks > 1) config = model::shard(*config, {.tensor = ranks}, {});
    if (!config) continue;
    const Products products = products_of(model::Graph(*config), counts);
    const Fit found = fit(products, counts);
    if (found == Fit::kNear && out.near.size() < 3) out.near.push_back(entry.name);
    if (found != Fit::kYes) continue;
    if (out.name.empty()) {
      out.name = entry.name;
      layout = layout_of(products);
    } else if (layout_of(products) == layout) {
      out.same.push_back(entry.name);
    } else {  // two that differ: neither stands out
      return {.name = "", .same = {}, .near = {out.name, entry.name}};
    }
  }
  return out;
}

}  // namespace

Recognised recognise(const SizeCounts& counts) {
  std::set<std::int64_t> inputs;
  for (const auto& [size, calls] : counts) inputs.insert(size.first);
  const Recognised whole = recognise(counts, inputs, 1);
  if (!whole.name.empty() || !whole.near.empty()) return whole;
  for (const std::int64_t ranks : {2, 4, 8}) {
    if (Recognised part = recognise(counts, inputs, ranks); !part.name.empty()) return part;
  }
  return whole;
}

}  // namespace llmprof::analyze
