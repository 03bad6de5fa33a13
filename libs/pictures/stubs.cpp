// Replaced part by part.
#include "base/json.h"
#include "pictures/page_data.h"

namespace llmprof::pictures {

Result<Timeline> timeline(const trace::Run&, const TimelineRequest&) { return Timeline{}; }
Result<Flame> flame(const trace::Run&, std::size_t) { return Flame{}; }
std::vector<FlameDiffNode> flame_diff(const Flame&, const Flame&) { return {}; }
Result<Roofline> roofline(const trace::Run&, const analyze::Summary&) { return Roofline{}; }
Result<std::vector<StepCurve>> step_curves(const trace::Run&) { return std::vector<StepCurve>(); }
base::Json to_json(const Timeline&) { return {}; }
base::Json to_json(const Flame&) { return {}; }
base::Json to_json(const Roofline&) { return {}; }
base::Json to_json(const std::vector<StepCurve>&) { return {}; }
Result<base::Json> run_data(const trace::Run&, const report::Page&) { return base::Json(); }
Result<std::string> html_page(const base::Json&) { return Error{ErrorCode::kUnsupported, "no page yet", ""}; }

}  // namespace llmprof::pictures
