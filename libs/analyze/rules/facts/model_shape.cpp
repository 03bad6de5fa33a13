#include "analyze/rules/facts/model_shape.h"

namespace llmprof::analyze {

ModelShape model_shape(const Basis& basis) {
  ModelShape out;
  if (!basis.model) return out;
  const model::Config& config = basis.model->config();
  out.known = true;
  out.weight_type = config.quantization ? config.quantization->weight.type : config.weight.type;
  out.weight_bytes_each = config.quantization ? config.quantization->weight.bytes : config.weight.bytes;
  out.kv_type = config.kv.type;
  out.kv_bytes_each = config.kv.bytes;
  out.quantized = config.quantization.has_value();
  out.layers = config.layers();
  out.weights_read_bytes = model::weights_read_bytes(*basis.model);
  for (const std::uint32_t kind : config.kind_of_layer)
    out.kv_bytes_per_token += static_cast<double>(config.kinds[kind].attention.kv_values()) * config.kv.bytes;
  if (config.kinds.empty()) return out;
  const model::Attention& attention = config.kinds.front().attention;
  out.heads = attention.heads;
  out.kv_heads = attention.kv_heads;
  out.head_size = attention.qk_dim;
  out.latent = attention.latent();
  return out;
}

std::vector<DevicePeak> arithmetic_peaks(const Basis& basis) {
  std::vector<DevicePeak> out;
  for (const PeakRate& peak : basis.peaks) {
    if (basis.device_ids.empty() || peak.device_id != basis.device_ids.front() || peak.quantity != "flops") continue;
    out.push_back({peak.type, peak.value, peak.source});
  }
  return out;
}

}  // namespace llmprof::analyze
