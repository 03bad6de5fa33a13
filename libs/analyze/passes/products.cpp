#include "analyze/passes/products.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <span>

namespace llmprof::analyze {
namespace {

using model::Op;
using model::OpClass;

bool is_product(const Op& op) { return op.in > 0 && op.out > 0 && op.use == model::Use::kAlways; }

// "self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj" -> "self_attn.qkv_proj"; gate and up -> "gate_up_proj".
std::string fused_name(std::span<const Op> parts) {
  const std::string& first = parts.front().name;
  const std::size_t begin = first.rfind('.') == std::string::npos ? 0 : first.rfind('.') + 1;
  std::string letters, words;
  for (const Op& part : parts) {
    std::string word = part.name.substr(std::min(begin, part.name.size()));
    if (word.ends_with("_proj")) word.resize(word.size() - 5);
    letters += word;
    words += (words.empty() ? "" : "_") + word;
  }
  const bool short_names = letters.size() == parts.size();
  return first.substr(0, begin) + (short_names ? letters : words) + "_proj";
}

// Operators that may be one product, by the first of them: how many of them are left as they are.
using Choice = std::map<std::string, std::size_t>;

class Builder {
 public:
  explicit Builder(const Choice& choice) : choice_(choice) {}

  void add(const std::vector<Op>& ops, const std::string& prefix, std::int32_t layer) {
    for (std::size_t i = 0; i < ops.size();) {
      std::size_t end = i + 1;
      if (is_product(ops[i])) {
        while (end < ops.size() && belongs_together(ops[i], ops[end])) ++end;
        add_products(std::span(ops).subspan(i, end - i), prefix, layer);
      } else {
        if (ops[i].op_class == OpClass::kAttention && ops[i].attention) add_core(ops[i], prefix);
        since_last_.push_back({prefix + ops[i].name, ops[i].op_class});
      }
      i = end;
    }
  }
  Products take() {
    out_.before.push_back(std::move(since_last_));
    return std::move(out_);
  }
  const Choice& fusable() const { return fusable_; }  // with the number of operators

 private:
  static bool belongs_together(const Op& a, const Op& b) {
    return is_product(b) && a.op_class == OpClass::kProjection && b.op_class == OpClass::kProjection && a.in == b.in &&
           a.experts == b.experts && !b.latent_expansion;
  }
  void add_products(std::span<const Op> parts, const std::string& prefix, std::int32_t layer) {
    if (parts.size() > 1) fusable_[parts.front().name] = parts.size();
    const auto chosen = choice_.find(parts.front().name);
    const std::size_t fused = chosen != choice_.end() ? std::min(chosen->second, parts.size()) : parts.size();
    const auto add_slot = [&](const Op& op, const std::string& name, std::int64_t width) {
      out_.slots.push_back({.module = prefix + name,
                            .op = name,
                            .size = {op.in, width},
                            .sampled = op.rows == model::Rows::kSampled,
                            .expert = op.experts.has_value(),
                            .layer = layer});
      out_.before.push_back(std::move(since_last_));
      since_last_.clear();
    };
    for (std::size_t i = 0; i < fused; ++i) add_slot(parts[i], parts[i].name, parts[i].out);
    if (fused == parts.size()) return;
    const std::string name = fused_name(parts.subspan(fused));
    std::int64_t width = 0;
    for (const Op& part : parts.subspan(fused)) {
      width += part.out;
      out_.fused[part.name] = name;
    }
    add_slot(parts[fused], name, width);
  }
  void add_core(const Op& op, const std::string& prefix) {
    if (out_.slots.empty()) return;
    const model::Attention& a = *op.attention;
    Core core{.module = prefix + op.name, .op = op.name, .dims = {a.qk_dim, a.v_dim}, .heads = a.heads};
    core.qk_dim = a.qk_dim;
    if (a.latent()) {
      core.dims.push_back(a.kv_rank);
      core.dims.push_back(a.kv_rank + a.rope_dim);
    }
    out_.slots.back().core = static_cast<std::int32_t>(out_.cores.size());
    out_.cores.push_back(std::move(core));
  }

  const Choice& choice_;
  Choice fusable_;
  Products out_;
  std::vector<Between> since_last_;  // the last slot
};

void add_model(const model::Graph& graph, Builder& builder) {
  builder.add(graph.first().ops, "", -1);
  const auto& groups = graph.group_of_layer();
  for (std::size_t i = 0; i < groups.size(); ++i) {
    const std::int64_t number = graph.config().first_layer + static_cast<std::int64_t>(i);
    builder.add(graph.groups()[groups[i]].ops, fmt::format("{}.{}.", graph.layer_prefix(), number),
                static_cast<std::int32_t>(i));
  }
  builder.add(graph.last().ops, "", -1);
}

// Every way to fuse: none, all, the last two of three.
std::vector<Choice> choices(const Choice& fusable) {
  std::vector<Choice> all{{}};
  for (const auto& [first, parts] : fusable) {
    const std::size_t before = all.size();
    for (std::size_t left = 0; left + 1 < parts && all.size() < 64; ++left) {
      for (std::size_t i = 0; i < before; ++i) {
        all.push_back(all[i]);
        all.back()[first] = left;
      }
    }
  }
  return all;
}

// Vocabularies are padded to a multiple of a tile: the logits are as wide as the calls say, if that is a little more.
void pad_logits(Products& products, const SizeCounts& counts) {
  constexpr double kMostPadding = 0.05;
  for (Slot& slot : products.slots) {
    if (!slot.sampled || counts.contains(slot.size)) continue;
    const auto [in, out] = slot.size;
    const auto wider = counts.upper_bound(slot.size);  // by in, then out
    if (wider == counts.end() || wider->first.first != in) continue;
    const std::int64_t padded = wider->first.second;
    if (padded % 8 == 0 && static_cast<double>(padded - out) <= kMostPadding * out) slot.size.second = padded;
  }
}

}  // namespace

double possible_passes(const Products& products, const SizeCounts& counts) {
  std::map<MatrixSize, double> needed;
  for (const Slot& slot : products.slots) {
    if (slot.layer >= 0) needed[slot.size] += 1;
  }
  double least = std::numeric_limits<double>::infinity();
  for (const auto& [size, times] : needed) {
    const auto found = counts.find(size);
    least = std::min(least, found == counts.end() ? 0 : static_cast<double>(found->second) / times);
  }
  return least;
}

Products products_of(const model::Graph& graph, const SizeCounts& counts) {
  const Choice none;
  Builder plain(none);
  add_model(graph, plain);
  Products best = plain.take();
  double most = possible_passes(best, counts);
  for (const Choice& choice : choices(plain.fusable())) {
    Builder builder(choice);
    add_model(graph, builder);
    Products products = builder.take();
    if (const double found = possible_passes(products, counts); found > most) {
      most = found;
      best = std::move(products);
    }
  }
  pad_logits(best, counts);
  best.layers = graph.config().layers();
  return best;
}

}  // namespace llmprof::analyze
