#pragma once
// Steps of a run that declares none and whose matrix products do not follow a known model: told from what the host
// launches (graph launches, kernels by name, matrix products, waits) and when. Everything it returns is marked
// inferred.

#include <unordered_map>
#include <vector>

#include "analyze/passes/classify.h"
#include "analyze/passes/repeated_products.h"
#include "base/result.h"
#include "trace/run.h"
#include "trace/strings.h"

namespace llmprof::analyze {

// By begin, `range` kNone; begin and end are host times, from the first launch of a step to the first of the next or to
// the end of its work. add_steps() puts them among the others; their windows are then extended to what the device did.
// First by matrix products (passes/repeated_products.h), else by the sequence of launches (find_period).
Result<std::vector<Step>> infer_launch_steps(const trace::Run& run, const ProcessOfThread& process_of_thread,
                                             trace::Strings& strings);

// The passes of training among `calls` (passes/repeated_products.h).
Result<std::vector<TrainingPass>> find_training(const trace::Run& run, const Calls& calls,
                                                const ProcessOfThread& process_of_thread);

// Of a run that trains, told from its matrix products (passes/repeated_products.h): forward, backward and optimizer
// steps, and forward passes that nothing was learned from as "forward only". Empty: it does not train.
Result<std::vector<Step>> infer_training(const trace::Run& run, const ProcessOfThread& process_of_thread,
                                         trace::Strings& strings);

// Passes of training whose attention is one kernel say how many rows they work on, not how long their sequences are:
// that kernel's grid has a block for each head of each sequence. `heads`: of the model. A forward pass takes the
// lengths of the backward pass behind it.
Result<void> size_by_attention(const trace::Run& run, std::int64_t heads, const trace::Strings& strings,
                               Classified& classified);

// Steps that are declared but do not say their size take that of the pass that lies in them, if exactly one does and it
// is of the same stage: told from matrix products as above.
Result<void> size_declared_steps(const trace::Run& run, const ProcessOfThread& process_of_thread,
                                 trace::Strings& strings, Classified& classified);

}  // namespace llmprof::analyze
