#pragma once
// What a transformer must cost. The only place with FLOP and byte formulas (ARCHITECTURE 6); analysis, benchmarks and
// prediction call these, so "MFU" means one thing. Conventions: matrix products only, 2MNK; attention causal; logits
// for sampled positions; element-wise work counts bytes, not FLOPs. docs/format/model.md derives each formula.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace llmprof::model {

struct Config {
  std::string family;  // "gpt2", "llama"
  std::int64_t layers = 0;
  std::int64_t hidden = 0;
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t head_dim = 0;
  std::int64_t intermediate = 0;
  std::int64_t vocab = 0;
  std::int64_t positions = 0;  // GPT-2: rows of the position table
  bool gated_mlp = false;      // gate, up, down instead of up, down
  bool biases = false;         // GPT-2: every projection and norm has one
  bool tied_embeddings = false;
  std::int64_t weight_bytes = 4;      // per parameter
  std::int64_t kv_bytes = 4;          // per cached value
  std::int64_t activation_bytes = 4;  // per value
  std::string type = "float32";       // of the arithmetic
};

// Hugging Face keys (model_type gpt2 or llama). Missing or absurd values are errors that name the key.
Result<Config> parse_config(std::string_view json_text, std::string_view where);

// Every parameter, tied ones once.
std::int64_t parameters(const Config& config);

enum class PassKind : std::uint8_t {
  kInference,  // with a KV cache; logits for sampled positions
  kForward,    // of training: whole sequences, no cache, a loss at every position
  kBackward,   // the gradients of that, for every parameter
  kOptimizer,  // AdamW over every parameter
};

// One pass over the model: `tokens` new tokens for each of `batch` sequences whose context, these included, is
// `context`. Training passes work on whole sequences: their context and sampled positions are their tokens.
struct Pass {
  std::int64_t batch = 1;
  std::int64_t tokens = 1;
  std::int64_t context = 1;
  std::int64_t sampled = 1;  // positions per sequence whose logits are computed
  PassKind kind = PassKind::kInference;
};

struct OpCost {
  std::string module;  // "layers.3.mlp.up_proj": the path annotations use, HF names without the leading "model."
  std::string op;      // "mlp.up_proj": the same for all layers
  double flops = 0;
  double weight_bytes = 0;      // parameters read, once per pass; training: gradients and moments too
  double kv_bytes = 0;          // KV cache read and written
  double activation_bytes = 0;  // activations that cannot stay on chip
};

// Operators in execution order. Activations larger than `on_chip_bytes` must move; smaller ones need not.
std::vector<OpCost> analyze(const Config& config, const Pass& pass, std::int64_t on_chip_bytes);

// Weights one pass reads. Embedding rows that are only looked up do not count.
double weights_read_bytes(const Config& config);
// Parameters, their gradients and AdamW's two moments: what a training step sweeps over.
double training_state_bytes(const Config& config);

// ---- efficiency (ARCHITECTURE 6) ---------------------------------------------------------------------------

double gemm_flops(std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t batch);  // 2·m·n·k·batch
double gemm_bytes(std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t batch, std::int64_t element_bytes);

// amount / time / peak, unknown unless all three are known and positive.
std::optional<double> efficiency(double amount, double time_ns, double peak_per_second);
// max(flops / peak, bytes / bandwidth), in ns.
std::optional<double> floor_ns(double flops, double bytes, double peak_flops, double peak_bandwidth);
// "compute" or "memory": which of the two is larger; "unknown" if a peak is.
std::string_view bound_by(double flops, double bytes, double peak_flops, double peak_bandwidth);

}  // namespace llmprof::model
