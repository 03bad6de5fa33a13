#include "workload/weights_file.h"

#include <fmt/format.h>

#include "workload/safetensors.h"

namespace llmprof::workload {
namespace {

const SafetensorsEntry* find_entry(const SafetensorsFile& file, const std::string& name) {
  for (const char* prefix : {"", "model.", "transformer."}) {
    if (const SafetensorsEntry* entry = file.find(prefix + name)) return entry;
  }
  return nullptr;
}

std::vector<std::int64_t> stored_shape(const TensorSpec& spec) {
  if (spec.kind != TensorSpec::Kind::kMatrix) return {spec.columns};
  if (spec.stored_in_out) return {spec.columns, spec.rows};
  return {spec.rows, spec.columns};
}

// in (columns, rows) to out (rows, columns)
void transpose(const std::vector<float>& in, const TensorSpec& spec, float* out) {
  for (std::int64_t row = 0; row < spec.rows; ++row) {
    for (std::int64_t column = 0; column < spec.columns; ++column) {
      out[row * spec.columns + column] = in[static_cast<std::size_t>(column * spec.rows + row)];
    }
  }
}

Result<void> load_tensor(const SafetensorsFile& file, const std::string& path, const TensorSpec& spec, float* out) {
  const SafetensorsEntry* const entry = find_entry(file, spec.name);
  if (entry == nullptr) return Error{ErrorCode::kCorruptInput, fmt::format("{}: no tensor {}", path, spec.name), ""};
  const std::vector<std::int64_t> expected = stored_shape(spec);
  if (entry->shape != expected) {
    return Error{ErrorCode::kCorruptInput,
                 fmt::format("{}: {}: shape is [{}], the configuration says [{}]", path, entry->name,
                             fmt::join(entry->shape, ", "), fmt::join(expected, ", ")),
                 ""};
  }
  if (!spec.stored_in_out) return file.read(*entry, out);
  std::vector<float> stored(static_cast<std::size_t>(spec.count()));
  LLMPROF_TRY(file.read(*entry, stored.data()));
  transpose(stored, spec, out);
  return {};
}

}  // namespace

Result<Weights> load_weights(const ModelConfig& config, const std::string& path) {
  LLMPROF_LET(const SafetensorsFile file, SafetensorsFile::open(path));
  Weights weights(config);
  for (const TensorSpec& spec : weights.specs()) {
    LLMPROF_TRY(load_tensor(file, path, spec, weights.tensor(spec.name)));
  }
  return weights;
}

}  // namespace llmprof::workload
