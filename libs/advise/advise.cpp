#include "advise/advise.h"

namespace llmprof::advise {

Result<Advice> advise(const std::string& tool, const Wish&) {
  return Error{ErrorCode::kUsage, "no advice about " + tool, ""};
}

}  // namespace llmprof::advise
