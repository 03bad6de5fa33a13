#pragma once
// quantization_config of a config.json: how matrices are stored, and which are left alone.

#include <memory>
#include <string_view>

#include "model/fields.h"

namespace llmprof::model {

// Reads quantization_config, if there is one, into config.quantization and config.kv. Errors and caveats go to
// `fields`.
void read_quantization(Fields& fields, Config& config);

// Which modules a quantisation applies to. Build it once: it compiles the patterns.
class Coverage {
 public:
  explicit Coverage(const Quantization& quantization);
  ~Coverage();
  Coverage(const Coverage&) = delete;
  Coverage& operator=(const Coverage&) = delete;
  bool covers(std::string_view module) const;  // "layers.3.mlp.up_proj"

 private:
  struct Lists;
  std::unique_ptr<const Lists> lists_;
};

// The methods of quantization_config, one row each. `q` reads that object.

// By out.method: sets the type of weights and products, and which modules the method is about.
void read_method(Fields& q, Quantization& out);
// num_bits, type, group_size…, as compressed-tensors describes weights and caches.
Number scheme_number(Fields& args);

std::string lower_case(std::string text);

}  // namespace llmprof::model
