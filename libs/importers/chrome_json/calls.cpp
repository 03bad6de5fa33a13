#include "importers/chrome_json/calls.h"

namespace llmprof::importers::chrome_json {

CallKind call_kind(std::string_view function) {
  const auto has = [&](std::string_view part) { return function.find(part) != std::string_view::npos; };
  CallKind kind;
  kind.does = CallKind::Does::kNothing;
  kind.waits = has("Synchronize");
  if (has("GraphLaunch")) {
    kind.does = CallKind::Does::kLaunchesGraph;
  } else if (has("BeginCapture")) {
    kind.does = CallKind::Does::kBeginsCapture;
  } else if (has("EndCapture")) {
    kind.does = CallKind::Does::kEndsCapture;
  } else if (has("Memcpy") || has("Memset")) {
    kind.does = CallKind::Does::kLaunches;
    kind.work = has("Memset") ? NodeKind::kFill : NodeKind::kCopy;
    kind.waits = has("Memcpy") && !has("Async");
  } else if (has("Launch") || has("Prefetch") || has("Enqueue")) {
    kind.does = CallKind::Does::kLaunches;
  }
  return kind;
}

}  // namespace llmprof::importers::chrome_json
