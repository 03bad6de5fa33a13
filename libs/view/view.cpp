#include "view/view.h"

namespace llmprof::view {

Result<void> serve(const Settings&, const std::function<void(const std::string&)>&, const std::atomic<bool>&) {
  return Error{ErrorCode::kUnsupported, "no view yet", ""};
}

}  // namespace llmprof::view
