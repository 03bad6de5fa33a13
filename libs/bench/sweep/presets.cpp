#include "bench/sweep/presets.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <set>

#include "base/human.h"
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

constexpr std::int64_t kTile = 64;  // rows that kernels of matrix products come in multiples of

// A product stored by columns is the transposed one stored by rows, and a matrix times a vector is one row of products:
// tokens are then the rows of x, as the operator has them.
constexpr const char* kShapes = R"(
WITH used AS (
  SELECT CASE WHEN layout = 'column' OR n = 1 THEN n ELSE m END AS m,
    CASE WHEN layout = 'column' OR n = 1 THEN m ELSE n END AS n,
    k, batch, type_a AS type, end_ns - begin_ns AS time_ns
  FROM gemm WHERE m > 0 AND n > 0 AND k > 0 AND batch > 0)
SELECT m, n, k, batch, type, count(*)::BIGINT AS calls, sum(time_ns)::BIGINT AS time_ns,
  (sum(sum(time_ns)) OVER ())::DOUBLE AS all_ns
FROM used GROUP BY m, n, k, batch, type ORDER BY time_ns DESC, m, n, k, batch, type)";

struct Shape {
  std::int64_t m = 0, n = 0, k = 0, batch = 0;
  Type type = Type::kFloat32;
};

Point point_of(const Operator& gemm, const Shape& shape, Type type, std::int64_t m) {
  return make_point(gemm, type, {{"m", m}, {"n", shape.n}, {"k", shape.k}, {"batch", shape.batch}});
}

void add_points(const Operator& gemm, const Shape& shape, const Point& used, const FromRunRequest& request,
                std::vector<Point>& points) {
  const std::vector<Type> own = {shape.type};
  for (const Type type : request.types.empty() ? own : request.types) {
    Point point = point_of(gemm, shape, type, shape.m);
    point.name = used.name;
    point.used_calls = used.used_calls;
    point.used_ns = used.used_ns;
    points.push_back(std::move(point));
    if (!request.neighbours) continue;
    for (const std::int64_t m : neighbours_of(shape.m)) {
      Point near = point_of(gemm, shape, type, m);
      near.name = fmt::format("near m={}", shape.m);
      points.push_back(std::move(near));
    }
  }
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

std::vector<std::int64_t> neighbours_of(std::int64_t m) {
  constexpr std::int64_t kMost = std::int64_t{1} << 40;  // beyond it nothing is measured anyway
  if (m < 1 || m > kMost) return {};
  const auto floor = static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(m)));
  std::set<std::int64_t> around{floor == m ? m / 2 : floor, floor * 2, (m - 1) / kTile * kTile,
                                (m / kTile + 1) * kTile};
  around.erase(0);
  around.erase(m);
  return {around.begin(), around.end()};
}

Result<std::vector<Point>> plan_from_run(const trace::Run& run, const FromRunRequest& request) {
  const Operator* gemm = find_operator("gemm");
  if (gemm == nullptr) return Error{ErrorCode::kInternal, "there is no operator gemm", ""};
  LLMPROF_LET(const trace::ResultTable table, run.query(kShapes));
  if (table.rows.empty()) {
    return Error{ErrorCode::kUsage, run.folder() + " has no matrix products",
                 "--from takes a run of `llmprof record` whose program called BLAS"};
  }
  std::vector<Point> points;
  std::size_t shapes = 0;
  for (const auto& row : table.rows) {
    if (shapes++ == request.top) break;
    const auto type = parse_type(row[4].text);
    const Shape shape{row[0].as_int(), row[1].as_int(), row[2].as_int(), row[3].as_int(),
                      type.value_or(Type::kFloat32)};
    Point used;
    used.used_calls = row[5].as_int();
    used.used_ns = row[6].as_int();
    const double all_ns = row[7].as_double();
    used.name =
        fmt::format("{} of the run's products", base::human_percent(all_ns > 0 ? row[6].as_double() / all_ns : 0));
    if (!type && request.types.empty()) {
      Point unknown = point_of(*gemm, shape, Type::kFloat32, shape.m);
      unknown.name = used.name;
      unknown.impossible = fmt::format("the run used the type {}, which no operator has", row[4].text);
      points.push_back(std::move(unknown));
      continue;
    }
    add_points(*gemm, shape, used, request, points);
  }
  return with_variants(points, request.variants, request.device);
}

}  // namespace llmprof::bench
