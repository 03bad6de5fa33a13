#include "importers/nsys_sqlite/launches.h"

#include <algorithm>

namespace llmprof::importers::nsys {
namespace {

constexpr std::size_t kNear = 32, kMostLong = 100'000;

}  // namespace

void Launches::expect(std::int64_t count) {
  entries_.reserve(std::min(static_cast<std::size_t>(std::max<std::int64_t>(count, 0)), kMost));
}

bool Launches::add(Actors::Index process, std::uint32_t correlation, const Call& call) {
  if (entries_.size() >= kMost) return false;
  const std::int64_t duration_ns = call.end_ns - call.begin_ns;
  const auto kept = static_cast<std::uint32_t>(std::min<std::int64_t>(duration_ns, UINT32_MAX));
  const Entry entry{call.begin_ns, correlation, kept, call.stack, process, call.thread};
  if (kept == UINT32_MAX && long_.size() < kMostLong) long_.try_emplace(key(entry), call.end_ns);
  sorted_ = sorted_ && (entries_.empty() || key(entries_.back()) <= key(entry));
  entries_.push_back(entry);
  return true;
}

void Launches::sort() {
  if (sorted_) return;
  std::ranges::sort(entries_, {}, [](const Entry& entry) { return std::pair(key(entry), entry.begin_ns); });
  sorted_ = true;
}

std::optional<Launches::Call> Launches::find(Actors::Index process, std::uint32_t correlation) {
  const std::uint64_t wanted = std::uint64_t{process} << 32 | correlation;
  std::size_t at = hint_;
  const std::size_t near = std::min(hint_ + kNear, entries_.size());
  while (at < near && key(entries_[at]) < wanted) ++at;
  const bool passed = at == near || (at == hint_ && at > 0 && key(entries_[at - 1]) >= wanted);
  if (passed) {
    const auto found = std::ranges::lower_bound(entries_, wanted, {}, key);
    at = static_cast<std::size_t>(found - entries_.begin());
  }
  if (at >= entries_.size() || key(entries_[at]) != wanted) return std::nullopt;
  hint_ = at;
  const Entry& entry = entries_[at];
  std::int64_t end_ns = entry.begin_ns + entry.duration_ns;
  if (entry.duration_ns == UINT32_MAX) {
    if (const auto known = long_.find(wanted); known != long_.end()) end_ns = known->second;
  }
  return Call{entry.begin_ns, end_ns, entry.thread, entry.stack};
}

}  // namespace llmprof::importers::nsys
