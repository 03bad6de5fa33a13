#include "analyze/passes/periodic.h"

#include <algorithm>
#include <map>
#include <unordered_map>

namespace llmprof::analyze {
namespace {

constexpr std::size_t kContext = 4;      // launches that name a place in the sequence
constexpr std::size_t kCandidates = 32;  // periods that are tried
constexpr double kLeastMatch = 0.5;
constexpr double kAsGood = 0.01;  // of two periods that match alike the shorter one is taken
constexpr std::size_t kLeastSteps = 3;

std::vector<std::uint64_t> places_of(const std::vector<std::uint32_t>& symbols) {
  std::vector<std::uint64_t> places;
  for (std::size_t i = 0; i + kContext <= symbols.size(); ++i) {
    std::uint64_t place = 0;
    for (std::size_t j = 0; j < kContext; ++j) place = (place ^ symbols[i + j]) * 0x9E3779B97F4A7C15u + j;
    places.push_back(place);
  }
  return places;
}

// Distances at which places come again, those first that would explain most of the sequence.
std::vector<std::size_t> candidates(const std::vector<std::uint64_t>& places) {
  std::unordered_map<std::uint64_t, std::size_t> last;
  std::unordered_map<std::size_t, std::size_t> votes;
  for (std::size_t i = 0; i < places.size(); ++i) {
    const auto [entry, fresh] = last.try_emplace(places[i], i);
    if (!fresh) ++votes[i - entry->second];
    entry->second = i;
  }
  std::vector<std::pair<std::size_t, std::size_t>> ranked;  // launches explained, distance
  for (const auto& [distance, count] : votes) ranked.emplace_back(count * distance, distance);
  std::sort(ranked.rbegin(), ranked.rend());
  ranked.resize(std::min(ranked.size(), kCandidates));
  std::vector<std::size_t> distances;
  for (const auto& [explained, distance] : ranked) distances.push_back(distance);
  std::sort(distances.begin(), distances.end());
  return distances;
}

double match_of(const LaunchSequence& sequence, std::size_t period) {
  double matched = 0, all = 0;
  for (std::size_t i = 0; i < sequence.size(); ++i) {
    const double weight = static_cast<double>(std::max<std::int64_t>(sequence.device_ns[i], 1));
    all += weight;
    if (i + period < sequence.size() && sequence.symbol[i] == sequence.symbol[i + period]) matched += weight;
  }
  return all > 0 ? matched / all : 0;
}

bool is_near(std::size_t distance, std::size_t period) {
  return distance * 10 >= period * 9 && distance * 10 <= period * 11;
}

// The host pauses between steps: of the places that come once a period, the one with the longest pause before it.
std::vector<std::size_t> find_starts(const LaunchSequence& sequence, const std::vector<std::uint64_t>& places,
                                     std::size_t period) {
  struct Place {
    std::vector<std::size_t> at;
    std::size_t near = 0;
    double pause_ns = 0;
  };
  std::unordered_map<std::uint64_t, Place> found;
  for (std::size_t i = 0; i < places.size(); ++i) {
    Place& place = found[places[i]];
    if (!place.at.empty() && is_near(i - place.at.back(), period)) ++place.near;
    if (i > 0) place.pause_ns += static_cast<double>(sequence.begin_ns[i] - sequence.begin_ns[i - 1]);
    place.at.push_back(i);
  }
  std::vector<std::size_t> best;
  double longest = -1;
  for (std::size_t i = 0; i < places.size(); ++i) {  // in order of time, so that equal ones do not depend on the hash
    const Place& place = found[places[i]];
    if (place.at.front() != i || place.near * 10 < place.at.size() * 8 || place.near + 1 < kLeastSteps) continue;
    const double pause = place.pause_ns / static_cast<double>(place.at.size());
    if (pause > longest) longest = pause, best = place.at;
  }
  return best;
}

}  // namespace

std::optional<Periodicity> find_period(const LaunchSequence& sequence) {
  const std::vector<std::uint64_t> places = places_of(sequence.symbol);
  Periodicity out;
  for (const std::size_t period : candidates(places)) {
    const double match = match_of(sequence, period);
    if (match > out.match + kAsGood) out.period = period, out.match = match;
  }
  if (out.match < kLeastMatch) return {};
  const std::vector<std::size_t> starts = find_starts(sequence, places, out.period);
  for (std::size_t i = 0; i < starts.size(); ++i) {
    const bool followed = i + 1 < starts.size() && is_near(starts[i + 1] - starts[i], out.period);
    const std::size_t last = std::min(starts[i] + out.period, sequence.size()) - 1;
    if (!followed && last + 1 - starts[i] < out.period) continue;  // recording ended inside it
    out.steps.push_back(
        {sequence.begin_ns[starts[i]], followed ? sequence.begin_ns[starts[i + 1]] : sequence.done_ns[last]});
  }
  if (out.steps.size() < kLeastSteps) return {};
  return out;
}

}  // namespace llmprof::analyze
