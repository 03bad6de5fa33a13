#include "collect/cuda/facts.h"

#include <string.h>

#include "collect/clock.h"
#include "collect/names.h"

namespace llmprof::collect {

void state_fact(const wire::Record& record) {
  Shared* shared = shared_memory();
  if (shared == nullptr) return;
  const std::uint32_t index = shared->fact_count.fetch_add(1, std::memory_order_relaxed);
  if (index >= kMaxFacts) {
    shared->fact_count.store(kMaxFacts, std::memory_order_relaxed);
    return count_loss(wire::LossKind::kDefinitionsFull);
  }
  Fact& fact = shared->facts[index];
  memcpy(static_cast<void*>(&fact.record), &record, sizeof(record));
  fact.ready.store(1, std::memory_order_release);
  g.definitions.fetch_add(1, std::memory_order_release);
}

void state_gap(std::uint64_t begin_ns, std::uint64_t end_ns, const char* why) {
  wire::Record record = wire::blank(wire::RecordKind::kGap);
  record.gap = {begin_ns, end_ns, intern(why)};
  state_fact(record);
}

void note(const char* subject, const char* text) {
  wire::Record record = wire::blank(wire::RecordKind::kNote);
  record.note = {now_ns(), intern(subject), intern(text)};
  state_fact(record);
}

}  // namespace llmprof::collect
