#pragma once
// The methods of quantization_config, one row each. `q` reads that object.

#include "model/fields.h"

namespace llmprof::model {

// By out.method: sets the type of weights and products, and which modules the method is about.
void read_method(Fields& q, Quantization& out);
// num_bits, type, group_size…, as compressed-tensors describes weights and caches.
Number scheme_number(Fields& args);

std::string lower_case(std::string text);

}  // namespace llmprof::model
