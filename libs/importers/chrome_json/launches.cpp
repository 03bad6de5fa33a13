#include "importers/chrome_json/launches.h"

#include <utility>

namespace llmprof::importers::chrome_json {

void Launches::emit(Work& work) {
  if (auto* const kernel = std::get_if<trace::KernelRow>(&work.row)) {
    kernel->op_id = ops_.op_of(work.external_id);
    kernel->gemm_id = ops_.executed(work.external_id, kernel->id, kernel->end_ns - kernel->begin_ns);
    sink_.add(*kernel);
  } else {
    auto& copy = std::get<trace::CopyRow>(work.row);
    copy.op_id = ops_.op_of(work.external_id);
    sink_.add(copy);
  }
}

void Launches::join(Work& work, const Launch& launch, std::int64_t correlation) {
  if (launch.graph && graphs_.add(work, correlation)) return;
  std::visit([&](auto& row) { trace::set_launch(row, &launch); }, work.row);
  emit(work);
}

void Launches::wait(Work work, std::int64_t correlation) {
  std::uint32_t place = 0;
  if (!free_.empty()) {
    place = free_.back();
    free_.pop_back();
    waiting_[place] = {std::move(work), 0};
  } else {
    place = static_cast<std::uint32_t>(waiting_.size());
    waiting_.push_back({std::move(work), 0});
  }
  std::uint32_t& first = *waiting_ids_.insert(correlation, 0);  // there is room: see executed()
  waiting_[place].next = std::exchange(first, place);
}

void Launches::executed(Work work, std::int64_t correlation) {
  ++works_;
  const Launch* const found = calls_.find(correlation);
  if (found != nullptr) {
    const Launch launch = *found;
    if (!launch.graph) calls_.erase(correlation);
    join(work, launch, correlation);
  } else if (correlation == kUnknown || waiting_.size() - free_.size() > kMaxWaitingWork) {
    sink_.lose(trace::Loss::kLaunchLost, 1);
    emit(work);
  } else {
    wait(std::move(work), correlation);
  }
}

void Launches::called(const Launch& launch, std::int64_t correlation) {
  if (launch.graph) graphs_.launched(launch, correlation);
  const std::uint32_t* const found = waiting_ids_.find(correlation);
  if (found != nullptr) {
    for (std::uint32_t place = *found; place != 0;) {
      join(waiting_[place].work, launch, correlation);
      free_.push_back(place);
      place = waiting_[place].next;
    }
    waiting_ids_.erase(correlation);
    if (!launch.graph) return;
  }
  if (calls_.full()) calls_ = IdMap<Launch>(kMaxWaitingCalls);  // those that nobody came for
  Launch* const kept = calls_.insert(correlation, launch);
  // A call of the runtime and the one of the driver in it share their number: the outer is the launch.
  if (kept != nullptr && launch.begin_ns <= kept->begin_ns && launch.end_ns >= kept->end_ns) *kept = launch;
}

void Launches::finish() {
  waiting_ids_.each([&](std::int64_t, std::uint32_t first) {
    for (std::uint32_t place = first; place != 0; place = waiting_[place].next) {
      sink_.lose(trace::Loss::kLaunchLost, 1);
      emit(waiting_[place].work);
    }
  });
  waiting_ids_ = IdMap<std::uint32_t>(kMaxWaitingWork);
  graphs_.finish();
}

}  // namespace llmprof::importers::chrome_json
