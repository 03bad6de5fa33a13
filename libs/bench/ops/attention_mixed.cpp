// The attention of a mixed batch, as engines run it under chunked prefill: a chunk of one prompt over all keys before
// it, and the decodes of other sequences, one after the other on one stream.

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "bench/ops/attention.h"
#include "bench/ops/attention_loops.h"
#include "bench/ops/rows.h"

namespace llmprof::bench {
namespace {

constexpr std::size_t kPrefillTensors = 4;  // q, k, v and out of the chunk stand before those of the decodes

struct AttentionMixed : RowOperator {
  static constexpr AxisSpec kAxes[] = {{"chunk", "512", 1, "new tokens of a prompt"},
                                       {"prior", "0,4096", 0, "tokens of the prompt before them, in the cache"},
                                       {"batch", "16", 0, "sequences that decode; 0: none"},
                                       {"context", "1024", 1, "tokens in the cache of each, the new one included"},
                                       {"heads", "32", 1, "heads of queries"},
                                       {"kv_heads", "8", 1, "heads of keys and values"},
                                       {"head_dim", "128", 1, "values per head"},
                                       {"page", "0", 0, "tokens per page of the decodes' cache; 0: no pages"}};
  static constexpr std::string_view kCpuMethod = "loop, online softmax";

  static double keys_of_prompt(const Problem& problem) { return axis(problem, "prior") + axis(problem, "chunk"); }

  static Result<void> check(const Problem& problem) {
    const double dim = axis(problem, "head_dim");
    LLMPROF_TRY(check_values(problem, {"batch", "context", "kv_heads", "head_dim"}));
    LLMPROF_TRY(check_values(problem, {"batch", "heads", "head_dim"}));
    LLMPROF_TRY(check_values(problem, {"chunk", "heads", "head_dim"}));
    LLMPROF_TRY(check_values(problem, keys_of_prompt(problem) * axis(problem, "kv_heads") * dim));
    LLMPROF_TRY(check_heads(problem));
    return check_pages(problem);
  }

  // The two calls it is made of, as problems of their operators.
  static Problem prefill_of(const Problem& p) {
    return {.op = "attention_prefill",
            .type = p.type,
            .axes = {{"batch", 1},
                     {"seq", p.at("chunk")},
                     {"heads", p.at("heads")},
                     {"kv_heads", p.at("kv_heads")},
                     {"head_dim", p.at("head_dim")}}};
  }
  static Problem decode_of(const Problem& p) {
    return {.op = "attention_decode",
            .type = p.type,
            .axes = {{"batch", p.at("batch")},
                     {"context", p.at("context")},
                     {"heads", p.at("heads")},
                     {"kv_heads", p.at("kv_heads")},
                     {"head_dim", p.at("head_dim")},
                     {"page", p.at("page")}}};
  }

  static std::vector<TensorSpec> tensors(const Problem& problem) {
    const std::int64_t dim = problem.at("head_dim"), queries = problem.at("chunk") * problem.at("heads") * dim;
    const std::int64_t keys = (problem.at("prior") + problem.at("chunk")) * problem.at("kv_heads") * dim;
    std::vector<TensorSpec> specs{{"q", Role::kIn, problem.type, queries},  // chunk, heads, head_dim
                                  {"k", Role::kIn, problem.type, keys},     // prior + chunk, kv_heads, head_dim
                                  {"v", Role::kIn, problem.type, keys},
                                  {"out", Role::kOut, problem.type, queries}};
    constexpr std::string_view kNames[] = {"decode_q", "decode_k", "decode_v", "decode_out", "page_table"};
    std::size_t next = 0;
    for (TensorSpec spec : kAttentionDecode.tensors(decode_of(problem))) {
      spec.name = kNames[next++];
      specs.push_back(spec);
    }
    return specs;
  }

  static model::KernelWork work(const Problem& problem) {
    const model::Attention attention{.heads = problem.at("heads"),
                                     .kv_heads = problem.at("kv_heads"),
                                     .qk_dim = problem.at("head_dim"),
                                     .v_dim = problem.at("head_dim")};
    const auto bytes = static_cast<double>(type_bytes(problem.type));
    model::KernelWork work =
        model::attention_work(attention, 1, axis(problem, "chunk"), keys_of_prompt(problem), bytes);
    if (problem.at("batch") == 0) return work;
    const model::KernelWork decode = kAttentionDecode.work(decode_of(problem));
    work.flops += decode.flops;
    work.read_bytes += decode.read_bytes;
    work.write_bytes += decode.write_bytes;
    return work;
  }

  static Problem small(const Problem& problem) {
    const std::int64_t prior = problem.at("prior");
    return few_heads(problem)
        .with("chunk", short_context(problem.at("chunk"), 0))
        .with("prior", prior == 0 ? 0 : short_context(prior, 0))
        .with("context", short_context(problem.at("context"), problem.at("page")));
  }

  // The rows [begin, end) of heads, chunk.
  template <class Value>
  static void attend_chunk(const Problem& problem, const Value* q, const Value* k, const Value* v, Value* out,
                           std::int64_t begin, std::int64_t end) {
    const std::int64_t chunk = problem.at("chunk"), prior = problem.at("prior"), dim = problem.at("head_dim");
    const std::int64_t heads = problem.at("heads"), kv_heads = problem.at("kv_heads");
    for (std::int64_t row = begin; row < end; ++row) {
      const std::int64_t token = row % chunk, head = row / chunk;
      const std::int64_t kv_offset = head / (heads / kv_heads) * dim, offset = (token * heads + head) * dim;
      const CacheRows<Value, std::int32_t> cache{
          .keys = k + kv_offset, .values = v + kv_offset, .step = kv_heads * dim, .first = 0};
      attend(q + offset, cache, prior + token + 1, {dim, dim}, out + offset);
    }
  }

  static void reference(const Problem& problem, std::span<std::vector<double>> t) {
    attend_chunk(problem, t[0].data(), t[1].data(), t[2].data(), t[3].data(), 0,
                 problem.at("chunk") * problem.at("heads"));
    if (problem.at("batch") > 0) kAttentionDecode.reference(decode_of(problem), t.subspan(kPrefillTensors));
  }

  static void cpu(const Problem& problem, std::span<std::byte* const> t, const Team& team) {
    team.each(problem.at("chunk") * problem.at("heads"), 1, [&](std::int64_t begin, std::int64_t end) {
      attend_chunk<float>(problem, floats(t[0]), floats(t[1]), floats(t[2]), floats(t[3]), begin, end);
    });
    if (problem.at("batch") > 0) kAttentionDecode.cpu(decode_of(problem), t.subspan(kPrefillTensors), team);
  }

  // The first of the decode's ways that can, or the one of this name.
  static Result<CudaCall> prepare_decode(cuda::Context& context, const Problem& problem, std::string_view only) {
    std::string reasons;
    for (const CudaImplementation& way : kAttentionDecode.cuda) {
      if (!only.empty() && way.name != only) continue;
      Result<CudaCall> call = way.prepare(context, decode_of(problem));
      if (call || call.error().code != ErrorCode::kUnsupported) return call;
      reasons += (reasons.empty() ? "" : "; ") + call.error().message;
    }
    return unsupported_error("{}", reasons);
  }

  static CudaCall joined(CudaCall prefill, CudaCall decode) {
    CudaCall call{.enqueue = {},
                  .method = fmt::format("{}; decodes: {}", prefill.method, decode.method),
                  .workspace_bytes = prefill.workspace_bytes + decode.workspace_bytes};
    call.enqueue = [prefill = std::move(prefill), decode = std::move(decode)](std::span<const cuda::Pointer> t,
                                                                              cuda::Stream stream) -> Result<void> {
      LLMPROF_TRY(prefill.enqueue(t.first(kPrefillTensors), stream));
      return decode.enqueue(t.subspan(kPrefillTensors), stream);
    };
    return call;
  }

  // cuDNN's causal mask begins at the first key: it has no place for tokens before the chunk.
  static Result<CudaCall> prepare_cudnn(cuda::Context& context, const Problem& problem) {
    if (problem.at("prior") > 0) {
      return unsupported_error("attention_mixed: cuDNN is asked for chunks that begin their prompt only");
    }
    const std::int64_t chunk = problem.at("chunk");
    LLMPROF_LET(CudaCall prefill, prepare_cudnn_attention(context, prefill_of(problem), chunk, chunk, true));
    if (problem.at("batch") == 0) return prefill;
    LLMPROF_LET(CudaCall decode, prepare_decode(context, problem, ""));
    return joined(std::move(prefill), std::move(decode));
  }

  static Result<CudaCall> prepare_kernel(cuda::Context& context, const Problem& problem) {
    LLMPROF_LET(CudaCall prefill, prepare_prefill_kernel(context, prefill_of(problem), problem.at("prior")));
    if (problem.at("batch") == 0) return prefill;
    LLMPROF_LET(CudaCall decode, prepare_decode(context, problem, "kernel"));
    return joined(std::move(prefill), std::move(decode));
  }

  static constexpr CudaImplementation kCuda[] = {{"cudnn", prepare_cudnn}, {"kernel", prepare_kernel}};
};

}  // namespace

const Operator kAttentionMixed = describe<AttentionMixed>(
    "attention_mixed", "attention of a mixed batch: a chunk of a prompt with what is before it, and decodes");

}  // namespace llmprof::bench
