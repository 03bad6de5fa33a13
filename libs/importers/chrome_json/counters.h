#pragma once
// Counter events (phase C): a name, and any number of series with their values in "args".

#include "importers/chrome_json/event.h"
#include "importers/chrome_json/names.h"
#include "importers/sink.h"

namespace llmprof::importers::chrome_json {

class Counters {
 public:
  Counters(Sink& sink, Names& names) : sink_(sink), names_(names) {}
  void take(const Event& event);

 private:
  Sink& sink_;
  Names& names_;
};

}  // namespace llmprof::importers::chrome_json
