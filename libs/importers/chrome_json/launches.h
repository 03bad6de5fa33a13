#pragma once
// Kernels and copies joined to the calls of the host that launched them, by correlation. Kineto writes a kernel shortly
// before its launch, others the launch first: whoever comes first waits.

#include <optional>
#include <variant>
#include <vector>

#include "importers/chrome_json/graphs.h"
#include "importers/chrome_json/id_map.h"
#include "importers/chrome_json/ops.h"
#include "importers/sink.h"

namespace llmprof::importers::chrome_json {

class Launches {
 public:
  static constexpr std::size_t kMaxWaitingWork = 200'000;
  static constexpr std::size_t kMaxWaitingCalls = 700'000;

  Launches(Sink& sink, Ops& ops, Graphs& graphs) : sink_(sink), ops_(ops), graphs_(graphs) {}

  void executed(Work work, std::int64_t correlation);
  void called(const Launch& launch, std::int64_t correlation);
  // Whether something that a device did waits for this call.
  bool waits_for(std::int64_t correlation) { return waiting_ids_.find(correlation) != nullptr; }
  std::int64_t works() const { return works_; }
  void finish();

 private:
  struct Waiting {
    Work work;
    std::uint32_t next = 0;  // of the same launch; 0: none
  };
  void wait(Work work, std::int64_t correlation);
  void join(Work& work, const Launch& launch, std::int64_t correlation);
  void emit(Work& work);

  Sink& sink_;
  Ops& ops_;
  Graphs& graphs_;
  std::int64_t works_ = 0;
  std::vector<Waiting> waiting_{1};  // 0 is nobody
  std::vector<std::uint32_t> free_;
  IdMap<std::uint32_t> waiting_ids_{kMaxWaitingWork};
  IdMap<Launch> calls_{kMaxWaitingCalls};
};

}  // namespace llmprof::importers::chrome_json
