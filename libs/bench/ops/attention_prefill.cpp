// Attention of a prompt: every token looks at itself and at those before it. Heads share keys and values in groups.

#include <fmt/format.h>

#include "bench/cuda/dnn.h"
#include "bench/operator.h"
#include "bench/ops/attention.h"
#include "bench/ops/attention_loops.h"
#include "bench/ops/rows.h"

namespace llmprof::bench {

namespace attention_prefill {
namespace {

constexpr AxisSpec kAxes[] = {{"batch", "1", 1, "sequences"},
                              {"seq", "128,512,2048", 1, "tokens per sequence"},
                              {"heads", "32", 1, "heads of queries"},
                              {"kv_heads", "8", 1, "heads of keys and values"},
                              {"head_dim", "128", 1, "values per head"}};
constexpr Type kTypes[] = {Type::kBfloat16, Type::kFloat16, Type::kFloat32};
constexpr std::int64_t kQueriesPerBlock = 128;  // as attention_prefill.cu has it

Result<void> check(const Problem& problem) {
  LLMPROF_TRY(check_values(problem, {"batch", "seq", "heads", "head_dim"}));
  return check_heads(problem);
}

std::vector<TensorSpec> tensors(const Problem& problem) {
  const std::int64_t tokens = row_count(problem), queries = tokens * problem.at("heads") * problem.at("head_dim");
  const std::int64_t keys = tokens * problem.at("kv_heads") * problem.at("head_dim");
  return {{.name = "q", .type = problem.type, .elements = queries},  // batch, seq, heads, head_dim
          {.name = "k", .type = problem.type, .elements = keys},     // batch, seq, kv_heads, head_dim
          {.name = "v", .type = problem.type, .elements = keys},
          {.name = "out", .role = Role::kOut, .type = problem.type, .elements = queries}};
}

model::KernelWork work(const Problem& problem) {
  const model::Attention attention{.heads = problem.at("heads"),
                                   .kv_heads = problem.at("kv_heads"),
                                   .qk_dim = problem.at("head_dim"),
                                   .v_dim = problem.at("head_dim")};
  const auto seq = static_cast<double>(problem.at("seq"));
  return model::attention_work(attention, static_cast<double>(problem.at("batch")), seq, seq,
                               static_cast<double>(type_bytes(problem.type)));
}

Problem small(const Problem& problem) { return few_heads(problem).with("seq", short_context(problem.at("seq"), 0)); }

// Calls attend(query and output offset, cache, keys seen) for the rows [begin, end) of batch, heads, seq.
template <class Value, class Attend>
void each_query(const Problem& problem, const Value* k, const Value* v, std::int64_t begin, std::int64_t end,
                const Attend& attend) {
  const std::int64_t seq = problem.at("seq"), heads = problem.at("heads"), kv_heads = problem.at("kv_heads");
  const std::int64_t dim = problem.at("head_dim");
  for (std::int64_t row = begin; row < end; ++row) {
    const std::int64_t token = row % seq, head = row / seq % heads, sequence = row / seq / heads;
    const std::int64_t kv_offset = head / (heads / kv_heads) * dim;
    const CacheRows<Value, std::int32_t> cache{
        .keys = k + kv_offset, .values = v + kv_offset, .step = kv_heads * dim, .first = sequence * seq};
    attend(((sequence * seq + token) * heads + head) * dim, cache, token + 1);
  }
}

void reference(const Problem& problem, std::span<std::vector<double>> t) {
  const std::int64_t dim = problem.at("head_dim");
  each_query(
      problem, t[1].data(), t[2].data(), 0, row_count(problem) * problem.at("heads"),
      [&](std::int64_t offset, const auto& cache, std::int64_t tokens) {
        attend_reference(t[0].data() + offset, cache, tokens, {dim, dim}, score_scale(dim), t[3].data() + offset);
      });
}

void cpu(const Problem& problem, std::span<std::byte* const> t, const Team& team) {
  const auto* q = reinterpret_cast<const float*>(t[0]);
  const auto* k = reinterpret_cast<const float*>(t[1]);
  const auto* v = reinterpret_cast<const float*>(t[2]);
  auto* out = reinterpret_cast<float*>(t[3]);
  const std::int64_t dim = problem.at("head_dim");
  const auto scale = static_cast<float>(score_scale(dim));
  team.each(row_count(problem) * problem.at("heads"), 1, [&](std::int64_t begin, std::int64_t end) {
    each_query(problem, k, v, begin, end, [&](std::int64_t offset, const auto& cache, std::int64_t tokens) {
      attend_online(q + offset, cache, tokens, {dim, dim}, scale, out + offset);
    });
  });
}

Result<CudaCall> prepare_cudnn(cuda::Context& context, const Problem& problem) {
  const std::int64_t seq = problem.at("seq");
  return cuda::cudnn_attention(context, {.type = problem.type,
                                         .batch = problem.at("batch"),
                                         .queries = seq,
                                         .keys = seq,
                                         .heads = problem.at("heads"),
                                         .kv_heads = problem.at("kv_heads"),
                                         .head_dim = problem.at("head_dim"),
                                         .causal = true});
}

Result<CudaCall> prepare_kernel(cuda::Context& context, const Problem& problem) {
  LLMPROF_TRY(check_tensor_cores(context, problem));
  const std::int64_t dim = problem.at("head_dim"), seq = problem.at("seq"), heads = problem.at("heads");
  const std::int64_t blocks_per_head = (seq + kQueriesPerBlock - 1) / kQueriesPerBlock;
  const std::int64_t blocks = blocks_per_head * heads * problem.at("batch");
  if (dim != 64 && dim != 128) {
    return Error{ErrorCode::kUnsupported,
                 fmt::format("attention_prefill: the kernel knows head_dim 64 and 128, not {}", dim), ""};
  }
  if (blocks > 0x7fffffff) {
    return Error{ErrorCode::kUnsupported, fmt::format("attention_prefill: {} blocks are more than a grid has", blocks),
                 ""};
  }
  const std::string kernel = fmt::format("attention_prefill_{}_{}", dim, type_name(problem.type));
  // Two stages of 64 keys and 64 values.
  const cuda::Launch launch{.grid_x = blocks, .block_x = 256, .shared_bytes = 4 * 64 * dim * 2};
  const std::int64_t kv_heads = problem.at("kv_heads");
  const auto scale = static_cast<float>(score_scale(dim));
  return kernel_call<4>(context, kernel, launch, static_cast<int>(seq), static_cast<int>(heads),
                        static_cast<int>(kv_heads), scale);
}

constexpr CudaImplementation kCuda[] = {{"cudnn", prepare_cudnn}, {"kernel", prepare_kernel}};

}  // namespace
}  // namespace attention_prefill

const Operator kAttentionPrefill{.name = "attention_prefill",
                                 .summary = "causal attention of whole sequences, grouped heads",
                                 .axes = attention_prefill::kAxes,
                                 .types = attention_prefill::kTypes,
                                 .check = attention_prefill::check,
                                 .tensors = attention_prefill::tensors,
                                 .work = attention_prefill::work,
                                 .small = attention_prefill::small,
                                 .reference = attention_prefill::reference,
                                 .cpu = attention_prefill::cpu,
                                 .cpu_method = "loop, online softmax",
                                 .cuda = attention_prefill::kCuda};

}  // namespace llmprof::bench
