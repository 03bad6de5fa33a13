#include "bench/presets.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "model/model.h"

namespace llmprof::bench {
namespace {

using model::Attention;
using model::Op;
using model::OpClass;
using AxisValues = std::vector<std::pair<std::string, std::int64_t>>;

struct Pass {
  std::int64_t batch = 1, tokens = 1, context = 1;
  bool decode = false;
};

// "q_proj" for "self_attn.q_proj"; other parts keep their path.
std::string short_name(const std::string& name) {
  constexpr std::string_view kPrefix = "self_attn.";
  return name.starts_with(kPrefix) ? name.substr(kPrefix.size()) : name;
}

// Points of one model: each of its operators asks for what stands for it in one pass.
class Planner {
 public:
  Planner(const model::Config& config, const LikeRequest& request) : config_(config), request_(request) {}

  void add(const Op& op, const Pass& pass) {
    if (op.use == model::Use::kTraining) return;
    const std::int64_t seq = op.rows == model::Rows::kSampled ? 1 : pass.tokens;
    switch (op.op_class) {
      case OpClass::kProjection:
      case OpClass::kRouter:
      case OpClass::kLogits:
        return add_projection(op, pass, seq);
      case OpClass::kNorm:
        return add_norm(op, pass, seq);
      case OpClass::kEmbedding:
        return add("embedding", op,
                   {{"batch", pass.batch}, {"seq", seq}, {"vocab", config_.vocab}, {"hidden", config_.hidden}});
      case OpClass::kAttention:
        return add_attention(op, pass);
      case OpClass::kElementwise:
        return add_activation(op, pass, seq);
      case OpClass::kSampling:
        return add("sampling", op, {{"batch", pass.batch}, {"vocab", config_.vocab}, {"k", 1}});
      case OpClass::kRope:  // with the core, which knows the heads
      case OpClass::kLoss:
        return;
    }
  }

  // What a layer does beside its named operators.
  void add_residual(const Pass& pass) {
    Op residual;
    residual.name = "residual";
    add("residual_add", residual, {{"batch", pass.batch}, {"seq", pass.tokens}, {"hidden", config_.hidden}});
  }

  LikePlan take() {
    LikePlan plan{.points = std::move(points_), .left_out = {left_out_.begin(), left_out_.end()}};
    return plan;
  }

 private:
  bool wanted(std::string_view name) const {
    if (request_.operators.empty()) return true;
    return std::ranges::any_of(request_.operators,
                               [&](const std::string& each) { return each == name || each == "all"; });
  }

  std::vector<Type> types_of(const Operator& op, const std::string& type) const {
    if (!request_.types.empty()) return request_.types;
    if (request_.device == DeviceKind::kCpu) return {default_type(op, request_.device)};
    const auto known = parse_type(type);
    return {known && knows_type(op, *known) ? *known : default_type(op, request_.device)};
  }

  void add(std::string_view name, const Op& op, const AxisValues& axes) {
    add(name, op, axes, config_.activation.type);
  }

  void add(std::string_view name, const Op& op, const AxisValues& axes, const std::string& type) {
    const Operator* found = find_operator(name);
    if (!wanted(name) || found == nullptr) return;
    for (const Type each : types_of(*found, type)) {
      Point point = make_point(*found, each, axes);
      point.name = short_name(op.name);
      points_.push_back(std::move(point));
    }
  }

  // Matrices of experts come as one layer of experts; see add_experts.
  void add_projection(const Op& op, const Pass& pass, std::int64_t seq) {
    if (op.experts) return add_experts(op, pass);
    if (op.in == 0 || op.out == 0) return;
    add("linear", op, {{"batch", pass.batch}, {"seq", seq}, {"in", op.in}, {"out", op.out}}, op.arithmetic);
  }

  void add_experts(const Op& op, const Pass& pass) {
    if (op.out != config_.hidden) return;  // once per layer of experts: with down
    Op layer = op;
    layer.name = op.name.substr(0, op.name.rfind('.'));
    add("moe", layer,
        {{"batch", pass.batch},
         {"seq", pass.tokens},
         {"hidden", config_.hidden},
         {"intermediate", op.in},
         {"experts", op.experts->all},
         {"top_k", op.experts->per_token}},
        op.arithmetic);
  }

  // Norms over heads take each head as a row.
  void add_norm(const Op& op, const Pass& pass, std::int64_t seq) {
    const std::int64_t values = op.tensors.front();
    const bool of_hidden = values == config_.hidden && op.parameters >= values;
    const std::int64_t width = of_hidden || op.parameters == 0 ? values : std::min(op.parameters, values);
    add(of_hidden && config_.norm_bias ? "layernorm" : "rmsnorm", op,
        {{"batch", pass.batch}, {"seq", seq * (values / width)}, {"hidden", width}});
  }

  void add_activation(const Op& op, const Pass& pass, std::int64_t seq) {
    if (op.experts || op.tensors.empty()) return;  // part of the layer of experts
    const bool gated = op.tensors.size() == 3;
    add(gated ? "silu_mul" : "gelu", op,
        {{"batch", pass.batch}, {"seq", seq}, {gated ? "intermediate" : "hidden", op.tensors.front()}});
  }

  void add_attention(const Op& op, const Pass& pass) {
    if (!op.attention) return;
    const Attention& a = *op.attention;
    if (a.latent()) return add_latent(op, a, pass);
    const AxisValues heads{{"heads", a.heads}, {"kv_heads", a.kv_heads}, {"head_dim", a.qk_dim}};
    const auto with = [&](AxisValues axes) {
      axes.insert(axes.end(), heads.begin(), heads.end());
      return axes;
    };
    Op named = op;
    named.name = "rope";
    if (a.rope) add("rope", named, with({{"batch", pass.batch}, {"seq", pass.tokens}}));
    named.name = "kv_cache";
    add("kv_write", named,
        {{"batch", pass.batch},
         {"seq", pass.tokens},
         {"kv_heads", a.kv_heads},
         {"head_dim", a.qk_dim},
         {"context", pass.context}});
    if (a.qk_dim != a.v_dim) {
      left_out_.insert(fmt::format("{}: keys of {} and values of {} per head", op.name, a.qk_dim, a.v_dim));
      return;
    }
    const std::int64_t reach = a.window > 0 ? a.window : a.chunk;  // keys a query sees at most
    if (pass.decode) {
      const std::int64_t seen = reach > 0 ? std::min(reach, pass.context) : pass.context;
      return add("attention_decode", op, with({{"batch", pass.batch}, {"context", seen}}));
    }
    if (reach > 0 && pass.tokens > reach) {
      left_out_.insert(fmt::format("{}: a prompt of {} with a window of {}", op.name, pass.tokens, reach));
      return;
    }
    add("attention_prefill", op, with({{"batch", pass.batch}, {"seq", pass.tokens}}));
  }

  void add_latent(const Op& op, const Attention& a, const Pass& pass) {
    if (pass.decode) {
      return add("mla_decode", op,
                 {{"batch", pass.batch},
                  {"context", pass.context},
                  {"heads", a.heads},
                  {"rank", a.kv_rank},
                  {"rope", a.rope_dim}});
    }
    left_out_.insert(
        fmt::format("{}: a prefill with keys of {} and values of {} per head", op.name, a.qk_dim, a.v_dim));
  }

  const model::Config& config_;
  const LikeRequest& request_;
  std::vector<Point> points_;
  std::set<std::string> left_out_;
};

std::vector<Pass> passes_of(const LikeRequest& request) {
  std::vector<Pass> passes;
  for (const std::int64_t batch : request.batches) {
    for (const std::int64_t seq : request.seqs) passes.push_back({batch, seq, seq, false});
    for (const std::int64_t context : request.contexts) passes.push_back({batch, 1, context, true});
  }
  return passes;
}

Result<void> check(const LikeRequest& request) {
  if (!request.operators.empty()) LLMPROF_TRY(chosen_operators(request.operators));
  for (const auto* values : {&request.batches, &request.seqs, &request.contexts}) {
    for (const std::int64_t value : *values) {
      if (value < 1)
        return Error{ErrorCode::kUsage, fmt::format("a batch, seq or context of {} is less than 1", value), ""};
    }
  }
  return {};
}

}  // namespace

Result<LikePlan> plan_like(const model::Config& config, const LikeRequest& request) {
  LLMPROF_TRY(check(request));
  const model::Graph graph(config);
  Planner planner(config, request);
  for (const Pass& pass : passes_of(request)) {
    for (const Op& op : graph.first().ops) planner.add(op, pass);
    for (const model::Graph::Group& group : graph.groups()) {
      for (const Op& op : group.ops) planner.add(op, pass);
      planner.add_residual(pass);
    }
    for (const Op& op : graph.last().ops) planner.add(op, pass);
  }
  LikePlan plan = planner.take();
  if (plan.points.empty()) {
    return Error{ErrorCode::kUsage, "the model has none of these operators in such a pass", "llmprof bench --list"};
  }
  LLMPROF_LET(plan.points, with_variants(plan.points, request.variants, request.device));
  return plan;
}

}  // namespace llmprof::bench
