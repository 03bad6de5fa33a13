#pragma once
// Weights from a .safetensors file with Hugging Face tensor names.

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/safetensors.h"
#include "workload/weights.h"

namespace llmprof::workload {

// Names may begin with "model." or "transformer."; tensors that the model does not have (attention masks) are ignored.
Result<Weights> load_weights(const ModelConfig& config, const std::string& path);

// Values out of .safetensors files (base/safetensors.h reads the headers).

using base::SafetensorsEntry;

class SafetensorsFile {
 public:
  static Result<SafetensorsFile> open(const std::string& path);

  const std::vector<SafetensorsEntry>& entries() const { return header_.entries; }
  const SafetensorsEntry* find(std::string_view name) const;
  // Values as float: F32 as they are, F16 and BF16 widened. out: entry.count() floats.
  Result<void> read(const SafetensorsEntry& entry, float* out) const;

 private:
  SafetensorsFile(base::RegularFile file, base::SafetensorsHeader header);
  base::RegularFile file_;
  base::SafetensorsHeader header_;
};

}  // namespace llmprof::workload
