#include "predict/measured/for_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <map>
#include <numeric>
#include <set>

#include "base/errors.h"
#include "model/cost.h"
#include "predict/tables/parts.h"

namespace llmprof::predict {
namespace {

using bench::Cache;
using bench::DeviceKind;
using model::Op;
using model::OpClass;
using AxisValues = std::vector<std::pair<std::string, std::int64_t>>;
using Sizes = std::vector<std::int64_t>;

constexpr std::int64_t kPage = 16;  // tokens, as engines have them

// Of one decode's cache: more would take longer to fill than to measure, and says nothing new.
constexpr double kMostCacheBytesGpu = 8e9, kMostCacheBytesCpu = 256e6;

std::int64_t floor_power(std::int64_t value) {
  return static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(std::max<std::int64_t>(value, 1))));
}

// Points in the order of the parts; those that differ in how they are measured come apart.
class Points {
 public:
  Points(DeviceKind device, std::set<std::string>& notes) : device_(device), notes_(notes) {}

  void add(std::string_view op_name, const std::string& part, const std::string& type, const AxisValues& axes,
           Cache cache, const std::string& implementation = "") {
    const bench::Operator* op = bench::find_operator(op_name);
    if (op == nullptr) return;
    bench::Point point = bench::make_point(*op, type_of(*op, part, type), axes);
    point.name = part;
    point.cache = cache;
    lists_[{cache, implementation}].push_back(std::move(point));
  }

  Result<std::vector<bench::Point>> all() const {
    std::vector<bench::Point> points;
    for (const auto& [how, list] : lists_) {
      LLMPROF_LET(const auto variants,
                  bench::with_variants(list, {.caches = {how.first}, .implementation = how.second}, device_));
      points.insert(points.end(), variants.begin(), variants.end());
    }
    return points;
  }

 private:
  // A CPU computes what it can: float32. A GPU has the model's type, else the operator's own, which is said.
  bench::Type type_of(const bench::Operator& op, const std::string& part, const std::string& wanted) {
    const bench::Type own = bench::default_type(op, device_);
    if (device_ == DeviceKind::kCpu) return own;
    const auto known = bench::parse_type(wanted);
    if (known && bench::knows_type(op, *known)) return *known;
    notes_.insert(fmt::format("{}: measured in {}, {} has no {}", part, bench::type_name(own), op.name, wanted));
    return own;
  }

  DeviceKind device_;
  std::set<std::string>& notes_;
  std::map<std::pair<Cache, std::string>, std::vector<bench::Point>> lists_;
};

class ForPlanner {
 public:
  ForPlanner(const ForRequest& request, const model::Config& shard)
      : request_(request),
        shard_(shard),
        points_(request.device, notes_),
        products_(product_rows(request.max_tokens)),
        streams_(doubling(1, request.max_tokens)) {}

  Result<ForPlan> plan() {
    for (const Part& part : chosen_parts()) add(part);
    ForPlan plan;
    LLMPROF_LET(plan.points, points_.all());
    plan.left_out = {notes_.begin(), notes_.end()};
    return plan;
  }

 private:
  // One part of each name: that of the most layers; attention that sees everything before one with a window.
  std::vector<Part> chosen_parts() {
    std::vector<Part> chosen;
    const auto full = [](const Part& part) {
      const auto& attention = part.ops.front().attention;
      return attention && attention->window == 0 && attention->chunk == 0;
    };
    for (Part& part : parts_of(model::Graph(shard_))) {
      const auto same = std::ranges::find(chosen, part.name, &Part::name);
      if (same == chosen.end()) {
        chosen.push_back(std::move(part));
        continue;
      }
      if (width(part) != width(*same)) {
        notes_.insert(
            fmt::format("{}: layers differ in their shapes; those of the most layers are measured", part.name));
      }
      const bool better = full(part) != full(*same) && part.name == "attention" ? full(part) : part.calls > same->calls;
      if (better) *same = std::move(part);
    }
    return chosen;
  }

  static std::int64_t width(const Part& part) {
    return std::accumulate(part.ops.begin(), part.ops.end(), std::int64_t{0},
                           [](std::int64_t sum, const Op& op) { return sum + op.out; });
  }

  void add(const Part& part) {
    const Op& op = part.ops.front();
    if (part.rows == PartRows::kExperts) return add_experts(part);
    switch (op.op_class) {
      case OpClass::kProjection:
      case OpClass::kRouter:
      case OpClass::kLogits:
        return add_product(part);
      case OpClass::kNorm:
        return part.name == "qk_norm" ? add_head_norms(part) : add_norm(part);
      case OpClass::kEmbedding:
        return add_embedding(part);
      case OpClass::kElementwise:
        return add_activation(part);
      case OpClass::kSampling:
        return add_sampler(part);
      case OpClass::kAttention:
        return add_attention(part);
      case OpClass::kRope:  // with the attention, which knows the heads
      case OpClass::kLoss:
        return;
    }
  }

  // Cold: the weights of a model are many times what a cache holds, so each step reads them from memory again.
  void add_product(const Part& part) {
    const Op& first = part.ops.front();
    std::int64_t out = 0;
    for (const Op& op : part.ops) {
      if (op.in != first.in) return void(notes_.insert(part.name + ": products of different inputs"));
      out += op.out;
    }
    if (first.in < 1 || out < 1) return void(notes_.insert(part.name + ": not a plain product"));
    const Sizes& rows = part.rows == PartRows::kSampled ? sampled() : products_;
    for (const std::int64_t n : rows) {
      points_.add("linear", part.name, first.arithmetic, {{"batch", 1}, {"seq", n}, {"in", first.in}, {"out", out}},
                  Cache::kCold);
    }
  }

  // Hot, as everything that reads only what the kernel before has written: where it fits the cache, it is still there.
  void add_norm(const Part& part) {
    const std::int64_t values = part.ops.front().tensors.front();
    for (const std::int64_t n : streams_) {
      const AxisValues axes{{"batch", 1}, {"seq", n}, {"hidden", values}};
      if (values != shard_.hidden) {  // of a latent: it has no residual
        add_stream("rmsnorm", part, axes);
      } else if (!shard_.norm_bias) {
        add_stream("residual_rmsnorm", part, axes);
      } else {  // two kernels: their times add up
        add_stream("layernorm", part, axes);
        add_stream("residual_add", part, axes);
      }
    }
  }

  // Norms of queries and keys as one call. The tokens are its batch: seq counts the heads of each.
  void add_head_norms(const Part& part) {
    std::int64_t rows = 0, values = 0, width = 0;
    bool per_head = true;
    for (const Op& op : part.ops) {
      const std::int64_t own = std::clamp<std::int64_t>(op.parameters, 1, op.tensors.front());
      per_head = per_head && (width == 0 || own == width) && op.tensors.front() % own == 0;
      width = own;
      rows += op.tensors.front() / own;
      values += op.tensors.front();
    }
    for (const std::int64_t n : streams_) {
      add_stream("rmsnorm", part, {{"batch", n}, {"seq", per_head ? rows : 1}, {"hidden", per_head ? width : values}});
    }
  }

  void add_activation(const Part& part) {
    const Op& op = part.ops.front();
    if (op.tensors.empty()) return;
    const bool gated = op.tensors.size() == 3;
    for (const std::int64_t n : streams_) {
      add_stream(gated ? "silu_mul" : "gelu", part,
                 {{"batch", 1}, {"seq", n}, {gated ? "intermediate" : "hidden", op.tensors.front()}});
    }
  }

  // Cold: a step's tokens are rows of the table that no step before has read.
  void add_embedding(const Part& part) {
    for (const std::int64_t n : streams_) {
      points_.add("embedding", part.name, shard_.activation.type,
                  {{"batch", 1}, {"seq", n}, {"vocab", shard_.vocab}, {"hidden", shard_.hidden}}, Cache::kCold);
    }
  }

  // Engines bring the logits of all ranks together first.
  void add_sampler(const Part& part) {
    for (const std::int64_t n : doubling(1, request_.max_batch)) {
      add_stream("sampling", part, {{"batch", n}, {"vocab", request_.config.vocab}, {"k", 1}});
    }
  }

  // Cold, as weights are. Fewer experts stand for fewer that are active.
  void add_experts(const Part& part) {
    const auto down = std::ranges::find_if(
        part.ops, [&](const Op& op) { return op.op_class == OpClass::kProjection && op.out == shard_.hidden; });
    if (down == part.ops.end() || !down->experts) return void(notes_.insert(part.name + ": no layer of experts"));
    const std::int64_t here = down->experts->here > 0 ? down->experts->here : down->experts->all;
    const std::int64_t per_token = std::min(down->experts->per_token, here);
    for (const std::int64_t n : streams_) {
      for (std::int64_t experts = here; experts >= std::max<std::int64_t>(per_token, here / 8); experts /= 2) {
        if (experts < here && n < 8) break;  // few tokens choose few experts anyway
        points_.add("moe", part.name, down->arithmetic,
                    {{"batch", 1},
                     {"seq", n},
                     {"hidden", shard_.hidden},
                     {"intermediate", down->in},
                     {"experts", experts},
                     {"top_k", per_token}},
                    Cache::kCold);
        if (experts == 1) break;
      }
    }
  }

  struct Core {
    AxisValues heads;
    std::int64_t kv_heads = 0, dim = 0, token_bytes = 0;
  };

  // Cold: between two attentions of a sequence lie all other layers, whose weights and caches have passed.
  void add_attention(const Part& part) {
    const model::Attention& a = *part.ops.front().attention;
    if (a.latent() || a.qk_dim != a.v_dim) {
      notes_.insert(part.name + (a.latent() ? ": a latent cache has no operator for prompts; its time is the roof"
                                            : ": keys and values of different sizes; its time is the roof"));
      return;
    }
    const auto bytes = static_cast<std::int64_t>(std::max(1.0, shard_.kv.bytes));
    const Core core{.heads = {{"heads", a.heads}, {"kv_heads", a.kv_heads}, {"head_dim", a.qk_dim}},
                    .kv_heads = a.kv_heads,
                    .dim = a.qk_dim,
                    .token_bytes = 2 * a.kv_heads * a.qk_dim * bytes};
    add_rope_and_cache(a, core);
    add_decodes(core);
    add_chunks(core);
    add_mixed(core);
  }

  static AxisValues with(AxisValues axes, const Core& core, std::int64_t page = -1) {
    axes.insert(axes.end(), core.heads.begin(), core.heads.end());
    if (page >= 0) axes.emplace_back("page", page);
    return axes;
  }

  void add_rope_and_cache(const model::Attention& a, const Core& core) {
    const std::int64_t room = (std::max<std::int64_t>(request_.max_tokens, 1024) + kPage - 1) / kPage * kPage;
    for (const std::int64_t n : streams_) {
      if (a.rope) {
        points_.add("rope", "rotary_emb", shard_.activation.type, with({{"batch", 1}, {"seq", n}}, core), Cache::kHot);
      }
      points_.add("kv_write", "kv_write", shard_.kv.type,
                  {{"batch", 1},
                   {"seq", n},
                   {"kv_heads", core.kv_heads},
                   {"head_dim", core.dim},
                   {"context", room},
                   {"page", kPage}},
                  Cache::kHot);
    }
  }

  // The kernels that know pages know these heads.
  std::int64_t page_of(const Core& core) const {
    const bool paged = request_.device == DeviceKind::kCpu || core.dim == 64 || core.dim == 128 || core.dim == 256;
    return paged ? kPage : 0;
  }

  void add_decodes(const Core& core) {
    const double most = request_.device == DeviceKind::kCpu ? kMostCacheBytesCpu : kMostCacheBytesGpu;
    for (const std::int64_t n : doubling(1, request_.max_batch)) {
      for (const std::int64_t context : contexts()) {
        if (static_cast<double>(n * core.token_bytes) * static_cast<double>(context) > most) continue;
        points_.add("attention_decode", "attention", shard_.activation.type,
                    with({{"batch", n}, {"context", context}}, core, page_of(core)), Cache::kCold);
      }
    }
  }

  // Chunks that begin a prompt, and those with tokens before them. On a GPU the best kernel for the first may not know
  // the second: its own rate for the first is then measured, too (see run_tables.h).
  void add_chunks(const Core& core) {
    const bool own_kernel = request_.device == DeviceKind::kGpu && (core.dim == 64 || core.dim == 128);
    for (const std::int64_t chunk : chunks()) {
      const AxisValues alone = with({{"batch", 1}, {"seq", chunk}}, core);
      points_.add("attention_prefill", "attention", shard_.activation.type, alone, Cache::kCold);
      if (own_kernel) {
        points_.add("attention_prefill", "attention", shard_.activation.type, alone, Cache::kCold, "kernel");
      }
      for (const std::int64_t prior : priors()) {
        points_.add("attention_mixed", "attention", shard_.activation.type,
                    with({{"chunk", chunk}, {"prior", prior}, {"batch", 0}, {"context", kPage}}, core, page_of(core)),
                    Cache::kCold);
      }
    }
  }

  // Few: they tell how well the sum of both parts holds.
  void add_mixed(const Core& core) {
    const std::int64_t longest = chunks().back(), least = std::min(longest, kPage);
    const std::int64_t each = floor_power(std::max(contexts().back() / 16, 4 * kPage));
    if (each > contexts().back()) return;
    for (const std::int64_t part : {16, 4}) {
      const std::int64_t chunk = std::max(floor_power(longest / part), least);
      for (const std::int64_t share : {32, 4}) {
        const std::int64_t n = floor_power(request_.max_batch / share);
        points_.add("attention_mixed", "attention", shard_.activation.type,
                    with({{"chunk", chunk}, {"prior", 0}, {"batch", n}, {"context", each}}, core, page_of(core)),
                    Cache::kCold);
      }
    }
  }

  void add_stream(std::string_view op, const Part& part, const AxisValues& axes) {
    points_.add(op, part.name, shard_.activation.type, axes, Cache::kHot);
  }

  // Whole pages: a context that ends in the middle of one is read as if it did not.
  Sizes contexts() const {
    Sizes sizes{kPage};
    for (const std::int64_t size : doubling(4 * kPage, std::max(request_.max_context / kPage * kPage, kPage))) {
      if (size > sizes.back()) sizes.push_back(size);
    }
    return sizes;
  }
  Sizes chunks() const {
    const std::int64_t most = std::min(request_.max_tokens, request_.max_context);
    return doubling(std::min<std::int64_t>(kPage, most), most);
  }
  Sizes priors() const {
    const std::int64_t most = floor_power(request_.max_context / 2), less = most / 8;
    return less >= 64 ? Sizes{less, most} : Sizes{std::max<std::int64_t>(most, 1)};
  }
  const Sizes& sampled() {
    if (sampled_.empty()) sampled_ = product_rows(request_.max_batch);
    return sampled_;
  }

  const ForRequest& request_;
  const model::Config& shard_;
  std::set<std::string> notes_;
  Points points_;
  Sizes products_, streams_, sampled_;
};

Result<void> settle_sizes(ForRequest& request) {
  constexpr std::int64_t kMost = 1 << 20;
  const bool cpu = request.device == DeviceKind::kCpu;
  const std::int64_t positions = request.config.positions > 0 ? request.config.positions : kMost;
  const auto settle = [](std::int64_t& size, std::int64_t suits) { size = size == 0 ? suits : size; };
  settle(request.max_context, std::min<std::int64_t>(positions, cpu ? 2048 : 32768));
  settle(request.max_tokens, cpu ? 512 : 8192);
  settle(request.max_batch, cpu ? 16 : 256);
  for (const std::int64_t size : {request.max_tokens, request.max_batch, request.max_context}) {
    if (size < 1 || size > kMost) return usage_error("a size of {}: it must be from 1 to {}", size, kMost);
  }
  return {};
}

}  // namespace

std::vector<std::int64_t> doubling(std::int64_t first, std::int64_t most) {
  Sizes sizes;
  for (std::int64_t size = std::max<std::int64_t>(first, 1); size < most; size *= 2) sizes.push_back(size);
  sizes.push_back(most);
  return sizes;
}

std::vector<std::int64_t> product_rows(std::int64_t most) {
  // Steps of 8 to 64, where tiles of products begin and end; of 16, 32 and 64 up to 512.
  Sizes sizes{1, 2, 4, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160, 192, 224, 256, 320, 384, 448, 512};
  for (std::int64_t size = 512; size < most; size *= 2) {
    sizes.push_back(size + size / 2);
    sizes.push_back(size * 2);
  }
  std::erase_if(sizes, [&](std::int64_t size) { return size > most; });
  if (sizes.back() != most) sizes.push_back(most);
  return sizes;
}

double default_budget_seconds(DeviceKind device) { return device == DeviceKind::kCpu ? 90 : 300; }

bench::BenchOptions options_within(double budget_seconds, std::size_t points) {
  // The rest is for memory, checks, plans of libraries and the time inside a graph.
  constexpr double kSampling = 0.4;
  const double each = kSampling * budget_seconds / static_cast<double>(std::max<std::size_t>(points, 1));
  bench::BenchOptions options;
  options.small_checks = true;
  options.measure.limit_seconds = std::clamp(each, 0.02, 1.0);
  options.measure.warm_up_seconds = std::min(0.005, options.measure.limit_seconds / 4);
  options.measure.least_seconds = std::min(0.01, options.measure.limit_seconds / 4);
  options.measure.least_samples = 5;
  options.measure.relative_spread = 0.01;
  options.graph_seconds = std::clamp(each / 4, 0.005, 0.1);
  return options;
}

Result<ForPlan> plan_for_model(ForRequest request) {
  LLMPROF_TRY(settle_sizes(request));
  LLMPROF_LET(const model::Config shard, model::shard(request.config, request.parallel, {}));
  return ForPlanner(request, shard).plan();
}

}  // namespace llmprof::predict
