#pragma once
// What calls of a device's host API do, told from their names.

#include <string_view>
#include <vector>

#include "importers/chrome_json/graphs.h"
#include "importers/chrome_json/names.h"

namespace llmprof::importers::chrome_json {

struct CallKind {
  enum class Does : std::uint8_t { kUnseen, kNothing, kLaunches, kLaunchesGraph, kBeginsCapture, kEndsCapture };
  Does does = Does::kUnseen;
  NodeKind work = NodeKind::kKernel;
  bool waits = false;  // the host waits for the device
};

CallKind call_kind(std::string_view function);

class CallKinds {
 public:
  explicit CallKinds(Names& names) : names_(names) {}
  const CallKind& of(trace::Name name) {
    if (name.id >= kinds_.size()) kinds_.resize(name.id + 1024);
    CallKind& kind = kinds_[name.id];
    if (kind.does == CallKind::Does::kUnseen) kind = call_kind(names_.text(name));
    return kind;
  }

 private:
  Names& names_;
  std::vector<CallKind> kinds_;  // by the number of the name
};

}  // namespace llmprof::importers::chrome_json
