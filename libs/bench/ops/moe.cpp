// A layer of experts: every token is sent to the top_k experts of its router logits, weighted by the softmax over
// those; an expert is down(silu(gate(x)) * up(x)). The router's own product is not part of it.

#include <cmath>
#include <memory>
#include <numeric>

#include "base/errors.h"
#include "bench/cpu/blas.h"
#include "bench/ops/grouped.h"
#include "bench/ops/product.h"
#include "bench/ops/rows.h"

namespace llmprof::bench {
namespace {

struct Moe : RowOperator {
  static constexpr auto cpu_method_of = product_cpu_method;

  static constexpr AxisSpec kAxes[] = {{"batch", "1", 1, "sequences"},
                                       {"seq", "1,128,2048", 1, "tokens per sequence"},
                                       {"hidden", "4096", 1, "values per token"},
                                       {"intermediate", "14336", 1, "values inside of an expert"},
                                       {"experts", "8", 1, "experts to choose from"},
                                       {"top_k", "2", 1, "experts per token"}};
  static constexpr std::int64_t kMostExperts = 1024;  // as in moe.cu
  enum Tensor : std::size_t { kX, kLogits, kGateUp, kDown, kY };

  struct Shape {
    std::int64_t tokens, hidden, intermediate, experts, top_k;
    std::int64_t rows() const { return tokens * top_k; }  // of all experts together
  };
  static Shape shape(const Problem& p) {
    return {row_count(p), p.at("hidden"), p.at("intermediate"), p.at("experts"), p.at("top_k")};
  }

  static Result<void> check(const Problem& p) {
    LLMPROF_TRY(check_most(p, "experts", kMostExperts));
    if (p.at("top_k") > p.at("experts")) {
      return usage_error("moe: top_k = {} of only {} experts", p.at("top_k"), p.at("experts"));
    }
    LLMPROF_TRY(check_values(p, axis(p, "experts") * 2 * axis(p, "intermediate") * axis(p, "hidden")));
    const double widest = std::max({axis(p, "hidden"), 2 * axis(p, "intermediate"), axis(p, "experts")});
    return check_values(p, axis(p, "batch") * axis(p, "seq") * axis(p, "top_k") * widest);
  }

  static std::vector<TensorSpec> tensors(const Problem& p) {
    const Shape s = shape(p);
    // Weights that keep the size of what passes through them: float16 does not overflow.
    const auto weights = [](std::int64_t inputs) { return Fill{.scale = 1 / std::sqrt(static_cast<double>(inputs))}; };
    return {{"x", Role::kIn, p.type, s.tokens * s.hidden},
            {"logits", Role::kIn, Type::kFloat32, s.tokens * s.experts},
            {"gate_up", Role::kIn, p.type, s.experts * 2 * s.intermediate * s.hidden, weights(s.hidden)},
            {"down", Role::kIn, p.type, s.experts * s.hidden * s.intermediate, weights(s.intermediate)},
            {"y", Role::kOut, p.type, s.tokens * s.hidden}};
  }

  static model::KernelWork work(const Problem& p) {
    const Shape s = shape(p);
    return model::experts_work({.tokens = s.tokens,
                                .hidden = s.hidden,
                                .intermediate = s.intermediate,
                                .experts = s.experts,
                                .per_token = s.top_k,
                                .value_bytes = static_cast<double>(type_bytes(p.type))});
  }

  // Fewer experts with about as many rows each: the same kernels are chosen.
  static Problem small(const Problem& p) {
    const Shape s = shape(p);
    const std::int64_t experts = std::min<std::int64_t>(s.experts, 8), top_k = std::min<std::int64_t>(s.top_k, 4);
    const std::int64_t rows_each = std::min<std::int64_t>(s.rows() / s.experts + 1, 80);
    return p.with("batch", 1)
        .with("seq", std::clamp<std::int64_t>(rows_each * experts / top_k, 1, s.tokens))
        .with("hidden", shortened(s.hidden, 128))
        .with("intermediate", shortened(s.intermediate, 64))
        .with("experts", experts)
        .with("top_k", top_k);
  }

  // The experts of one token, the best first, the lower of equal ones; and their shares.
  template <class T>
  static void route(const T* logits, const Shape& s, std::vector<std::int64_t>& chosen, std::vector<double>& shares) {
    std::vector<std::int64_t> order(static_cast<std::size_t>(s.experts));
    std::iota(order.begin(), order.end(), 0);
    std::partial_sort(order.begin(), order.begin() + s.top_k, order.end(), [&](std::int64_t a, std::int64_t b) {
      return logits[a] > logits[b] || (logits[a] == logits[b] && a < b);
    });
    chosen.assign(order.begin(), order.begin() + s.top_k);
    shares.clear();
    double sum = 0;
    for (const std::int64_t expert : chosen) {
      shares.push_back(std::exp(static_cast<double>(logits[expert]) - static_cast<double>(logits[chosen.front()])));
      sum += shares.back();
    }
    for (double& share : shares) share /= sum;
  }

  static double silu(double x) { return x / (1 + std::exp(-x)); }

  static void reference(const Problem& p, std::span<std::vector<double>> t) {
    const Shape s = shape(p);
    const auto dot = [](const double* a, const double* b, std::int64_t count) {
      return std::inner_product(a, a + count, b, 0.0);
    };
    std::vector<std::int64_t> chosen;
    std::vector<double> shares, inner(static_cast<std::size_t>(s.intermediate));
    for (std::int64_t token = 0; token < s.tokens; ++token) {
      const double* const x = t[kX].data() + token * s.hidden;
      double* const y = t[kY].data() + token * s.hidden;
      std::fill_n(y, s.hidden, 0);
      route(t[kLogits].data() + token * s.experts, s, chosen, shares);
      for (std::size_t k = 0; k < chosen.size(); ++k) {
        const double* const gate = t[kGateUp].data() + chosen[k] * 2 * s.intermediate * s.hidden;
        const double* const up = gate + s.intermediate * s.hidden;
        const double* const down = t[kDown].data() + chosen[k] * s.hidden * s.intermediate;
        for (std::int64_t i = 0; i < s.intermediate; ++i) {
          inner[i] = silu(dot(x, gate + i * s.hidden, s.hidden)) * dot(x, up + i * s.hidden, s.hidden);
        }
        for (std::int64_t i = 0; i < s.hidden; ++i) {
          y[i] += shares[k] * dot(inner.data(), down + i * s.intermediate, s.intermediate);
        }
      }
    }
  }

  struct Routed {
    std::int64_t token;
    float share;
  };

  // Rows sorted by expert, one expert's products after the other's.
  static void cpu(const Problem& p, std::span<std::byte* const> t, const Team& team) {
    const Shape s = shape(p);
    const float* x = floats(t[kX]);
    float* y = floats(t[kY]);
    std::vector<std::vector<Routed>> routed(static_cast<std::size_t>(s.experts));
    std::vector<std::int64_t> chosen;
    std::vector<double> shares;
    for (std::int64_t token = 0; token < s.tokens; ++token) {
      route(floats(t[kLogits]) + token * s.experts, s, chosen, shares);
      for (std::size_t k = 0; k < chosen.size(); ++k) {
        routed[static_cast<std::size_t>(chosen[k])].push_back({token, static_cast<float>(shares[k])});
      }
    }
    std::fill_n(y, s.tokens * s.hidden, 0.0f);
    std::vector<float> in, both, inner, out;
    const auto bytes = [](std::vector<float>& values) { return reinterpret_cast<std::byte*>(values.data()); };
    for (std::int64_t expert = 0; expert < s.experts; ++expert) {
      const std::vector<Routed>& mine = routed[static_cast<std::size_t>(expert)];
      if (mine.empty()) continue;
      const auto rows = static_cast<std::int64_t>(mine.size());
      in.resize(static_cast<std::size_t>(rows * s.hidden));
      both.resize(static_cast<std::size_t>(rows * 2 * s.intermediate));
      inner.resize(static_cast<std::size_t>(rows * s.intermediate));
      out.resize(in.size());
      for (std::int64_t row = 0; row < rows; ++row) {
        std::copy_n(x + mine[row].token * s.hidden, s.hidden, in.data() + row * s.hidden);
      }
      const auto weight_bytes = static_cast<std::int64_t>(sizeof(float)) * s.intermediate * s.hidden;
      multiply({.m = rows, .n = 2 * s.intermediate, .k = s.hidden}, bytes(in), t[kGateUp] + expert * 2 * weight_bytes,
               bytes(both), team);
      team.each(rows * s.intermediate, kGrainValues, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) {
          const float* const row = both.data() + i / s.intermediate * 2 * s.intermediate + i % s.intermediate;
          inner[i] = row[0] / (1 + std::exp(-row[0])) * row[s.intermediate];
        }
      });
      multiply({.m = rows, .n = s.hidden, .k = s.intermediate}, bytes(inner), t[kDown] + expert * weight_bytes,
               bytes(out), team);
      for (std::int64_t i = 0; i < rows * s.hidden; ++i) {
        const Routed& to = mine[i / s.hidden];
        y[to.token * s.hidden + i % s.hidden] += to.share * out[i];
      }
    }
  }

  struct Workspace {
    cuda::Buffer counts, choice, place, share, source, tiles, tile_count, both, inner, out;
  };

  static Result<std::shared_ptr<Workspace>> allocate(cuda::Context& context, const Shape& s, std::int64_t value_bytes,
                                                     std::int64_t tiles) {
    auto space = std::make_shared<Workspace>();
    const std::int64_t rows = s.rows();
    LLMPROF_LET(space->counts, context.allocate(s.experts * 4));
    LLMPROF_LET(space->choice, context.allocate(rows * 4));
    LLMPROF_LET(space->place, context.allocate(rows * 4));
    LLMPROF_LET(space->share, context.allocate(rows * 4));
    LLMPROF_LET(space->source, context.allocate(rows * 4));
    LLMPROF_LET(space->tiles, context.allocate(tiles * static_cast<std::int64_t>(sizeof(GroupTile))));
    LLMPROF_LET(space->tile_count, context.allocate(4));
    LLMPROF_LET(space->both, context.allocate(rows * 2 * s.intermediate * value_bytes));
    LLMPROF_LET(space->inner, context.allocate(rows * s.intermediate * value_bytes));
    LLMPROF_LET(space->out, context.allocate(rows * s.hidden * value_bytes));
    return space;
  }

  class Layer {
   public:
    Layer(cuda::Context& context, const Problem& p, GroupedKernel gate_up, GroupedKernel down,
          std::shared_ptr<Workspace> space)
        : context_(context),
          s_(shape(p)),
          type_(p.type),
          gate_up_(std::move(gate_up)),
          down_(std::move(down)),
          space_(std::move(space)) {}

    Result<void> enqueue(std::span<const cuda::Pointer> t) const {
      const Workspace& w = *space_;
      LLMPROF_TRY(route(t[kLogits]));
      LLMPROF_TRY(gate_up_.enqueue(context_, t[kX], t[kGateUp], w.both.pointer(), w.tiles.pointer(),
                                   w.tile_count.pointer(), w.source.pointer()));
      const std::int64_t rows = s_.rows(), pack = 16 / type_bytes(type_);
      LLMPROF_TRY(context_.launch(kernel_name("moe_activate", type_),
                                  streaming_launch(rows * s_.intermediate / pack, 256),
                                  {w.both.pointer(), w.inner.pointer(), rows, s_.intermediate}));
      LLMPROF_TRY(down_.enqueue(context_, w.inner.pointer(), t[kDown], w.out.pointer(), w.tiles.pointer(),
                                w.tile_count.pointer(), 0));
      const auto top_k = static_cast<std::int32_t>(s_.top_k);
      return context_.launch(
          kernel_name("moe_combine", type_), streaming_launch(s_.tokens * s_.hidden / pack, 256),
          {w.out.pointer(), w.place.pointer(), w.share.pointer(), t[kY], s_.tokens, s_.hidden, top_k});
    }

   private:
    Result<void> route(cuda::Pointer logits) const {
      constexpr std::int64_t kWarps = 4, kSortThreads = 1024;
      const Workspace& w = *space_;
      const auto tokens = static_cast<std::int32_t>(s_.tokens), experts = static_cast<std::int32_t>(s_.experts);
      const auto top_k = static_cast<std::int32_t>(s_.top_k), rows = static_cast<std::int32_t>(s_.rows());
      const auto tile_rows = static_cast<std::int32_t>(gate_up_.tile_rows);
      LLMPROF_TRY(context_.set_bytes(w.counts.pointer(), 0, w.counts.bytes()));
      LLMPROF_TRY(context_.launch("moe_route_float32",
                                  {.grid_x = (s_.tokens + kWarps - 1) / kWarps,
                                   .block_x = kWarps * 32,
                                   .shared_bytes = kWarps * s_.experts * 4},
                                  {logits, w.counts.pointer(), w.choice.pointer(), w.place.pointer(), w.share.pointer(),
                                   tokens, experts, top_k}));
      return context_.launch("moe_sort_rows",
                             {.grid_x = (s_.rows() + kSortThreads - 1) / kSortThreads, .block_x = kSortThreads},
                             {w.counts.pointer(), w.choice.pointer(), w.place.pointer(), w.source.pointer(),
                              w.tiles.pointer(), w.tile_count.pointer(), rows, experts, top_k, tile_rows});
    }

    cuda::Context& context_;
    Shape s_;
    Type type_;
    GroupedKernel gate_up_, down_;
    std::shared_ptr<Workspace> space_;
  };

  static Result<CudaCall> prepare(cuda::Context& context, const Problem& p) {
    const Shape s = shape(p);
    if (s.hidden % 8 != 0 || s.intermediate % 8 != 0) {
      return unsupported_error("kernel moe needs hidden and intermediate in eights, not {} and {}", s.hidden,
                               s.intermediate);
    }
    LLMPROF_LET(GroupedKernel gate_up,
                choose_grouped_kernel(context, p.type, s.rows(), s.experts, 2 * s.intermediate, s.hidden));
    LLMPROF_LET(GroupedKernel down,
                choose_grouped_kernel(context, p.type, s.rows(), s.experts, s.hidden, s.intermediate));
    LLMPROF_LET(std::shared_ptr<Workspace> space, allocate(context, s, type_bytes(p.type), gate_up.tiles));
    const std::int64_t workspace_bytes = space->both.bytes() + space->inner.bytes() + space->out.bytes() +
                                         space->choice.bytes() * 4 + space->tiles.bytes() + space->counts.bytes() + 4;
    const std::string method =
        fmt::format("kernels moe_*, {}{} over tiles that are listed on the GPU: no host in between", gate_up.name,
                    gate_up.name == down.name ? "" : ", " + down.name);
    const auto layer = std::make_shared<Layer>(context, p, std::move(gate_up), std::move(down), std::move(space));
    return CudaCall{.enqueue = [layer](std::span<const cuda::Pointer> t, cuda::Stream) { return layer->enqueue(t); },
                    .method = method,
                    .workspace_bytes = workspace_bytes};
  }
};

}  // namespace

const Operator kMoe = describe<Moe>("moe", "layer of experts: routing, grouped products, silu-mul, weighted sum");

}  // namespace llmprof::bench
