#include "analyze/infer_steps.h"

namespace llmprof::analyze {

Result<std::vector<Step>> infer_launch_steps(const trace::Run&, const Classified&,
                                             const std::unordered_map<std::int64_t, std::int64_t>&, trace::Strings&) {
  return std::vector<Step>{};
}

}  // namespace llmprof::analyze
