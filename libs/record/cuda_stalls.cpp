#include "record/cuda_stalls.h"

#include <algorithm>
#include <tuple>
#include <vector>

#include "trace/run_writer.h"

namespace llmprof::record {
namespace {

// Sums stop at the largest number: a log may claim any count.
void add_up(std::int64_t& sum, std::uint64_t more) {
  const auto count = static_cast<std::int64_t>(std::min<std::uint64_t>(more, INT64_MAX / 4));
  if (__builtin_add_overflow(sum, count, &sum)) sum = INT64_MAX;
}

}  // namespace

std::size_t CudaStalls::Hash::operator()(const Place& place) const {
  std::uint64_t mixed = place.cubin;
  for (const std::uint64_t part : {place.pc_offset, static_cast<std::uint64_t>(place.device_id),
                                   std::uint64_t{place.kernel} << 32 | place.reason, std::uint64_t{place.issued}}) {
    mixed = (mixed ^ part) * 0x9E3779B97F4A7C15ull;
    mixed ^= mixed >> 29;
  }
  return mixed;
}

void CudaStalls::take(const wire::StallRecord& record, const Names& names, trace::Id device_id) {
  if (record.samples == 0) return;
  const Place place{record.cubin, record.pc_offset, device_id, names.kernel.id, names.reason.id, record.issued != 0};
  auto found = places_.find(place);
  if (found == places_.end()) {
    if (places_.size() == kMostPlaces) return add_up(lost_, record.samples);
    found = places_.emplace(place, Seen{}).first;
  }
  Seen& seen = found->second;
  add_up(seen.samples, record.samples);
  if (names.file.id != 0) seen.file = names.file, seen.line = record.line;
}

void CudaStalls::write(trace::RunWriter& writer, trace::Id process_id, trace::Id& next_id) {
  std::vector<std::pair<Place, Seen>> sorted(places_.begin(), places_.end());
  places_.clear();
  std::sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) {
    const auto key = [](const Place& p) {
      return std::tie(p.device_id, p.kernel, p.cubin, p.pc_offset, p.reason, p.issued);
    };
    return key(a.first) < key(b.first);
  });
  trace::StallRow row;
  row.process_id = process_id;
  for (const auto& [place, seen] : sorted) {
    row.id = next_id++;
    row.device_id = place.device_id;
    row.kernel.id = place.kernel;
    row.cubin = static_cast<std::int64_t>(place.cubin);
    row.offset_bytes = static_cast<std::int64_t>(std::min<std::uint64_t>(place.pc_offset, INT64_MAX));
    row.reason.id = place.reason;
    row.issued = place.issued;
    row.samples = seen.samples;
    row.file = seen.file;
    row.line = seen.line != 0 ? trace::OptionalInt(seen.line) : trace::OptionalInt();
    writer.add(row);
  }
}

}  // namespace llmprof::record
