#include "workload/model_options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "base/file.h"
#include "workload/command.h"

namespace llmprof::workload {

void describe_model(CLI::App& command, ModelOptions& o) {
  command.add_option("--preset", o.preset, "model and run to start from (default: demo, on a GPU demo-gpu)");
  command.add_option("--device", o.device, "cpu, cuda, or auto: a GPU if there is one")->capture_default_str();
  command.add_option("--type", o.type, "float32 or bf16, on a GPU (default: bf16 if the GPU has it)");
  command.add_option("--config", o.config_path, "Hugging Face config.json of the model, instead of the preset's");
  command.add_option("--weights", o.weights_path, ".safetensors file with the weights (default: random by seed)");
  command.add_option("--family", o.family, "gpt2 or llama");
  command.add_option("--layers", o.sizes.layers, "number of layers");
  command.add_option("--hidden", o.sizes.hidden, "width of the residual stream");
  command.add_option("--heads", o.sizes.heads, "attention heads");
  command.add_option("--kv-heads", o.sizes.kv_heads, "key-value heads (llama)");
  command.add_option("--intermediate", o.sizes.intermediate, "width of the MLP");
  command.add_option("--vocab", o.sizes.vocab, "size of the vocabulary");
  command.add_option("--seed", o.seed, "of weights, prompts and sampler")->capture_default_str();
  command.add_option("--threads", o.threads, "threads (default: processors this process may use)");
}

Result<Preset> choose_preset(const ModelOptions& o, const ChosenDevice& device) {
  return find_preset(!o.preset.empty() ? o.preset : device.gpu != nullptr ? "demo-gpu" : "demo");
}

Result<ModelConfig> choose_model(const ModelOptions& o, const Preset& preset) {
  if (!o.config_path.empty()) {
    LLMPROF_LET(const std::string text, base::read_file(o.config_path, 16 << 20));
    return parse_config(text, o.config_path);
  }
  ModelConfig config = preset.config;
  if (!o.family.empty()) {
    LLMPROF_LET(const Family family, parse_family(o.family));
    if (family != config.family) config.tied_embeddings = false;
    config.family = family;
  }
  return with_sizes(config, o.sizes);
}

Result<Weights> make_weights(const ModelOptions& o, const ModelConfig& config, ThreadPool& pool) {
  if (!o.weights_path.empty()) return load_weights(config, o.weights_path);
  return Weights::random(config, o.seed, pool);
}

std::string weights_text(const ModelOptions& o) {
  return o.weights_path.empty() ? fmt::format("random, seed {}", o.seed) : o.weights_path;
}

Result<cuda::DeviceWeights> make_device_weights(const ModelOptions& o, const ModelConfig& config, ElementType type,
                                                ThreadPool& pool, cuda::Device& gpu) {
  cuda::DeviceWeights weights(gpu, config, type);
  if (o.weights_path.empty()) {
    weights.fill(Start::kRandom, o.seed);
  } else {
    LLMPROF_LET(const Weights loaded, make_weights(o, config, pool));
    weights.upload(loaded);
  }
  return weights;
}

}  // namespace llmprof::workload
