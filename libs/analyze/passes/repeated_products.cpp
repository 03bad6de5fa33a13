#include "analyze/passes/repeated_products.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <unordered_map>

namespace llmprof::analyze {

namespace {

constexpr std::int64_t kLeastRepetitions = 3;
constexpr double kLeastOfUsual = 0.5;  // a pass with fewer products than this part of the usual number is none

struct Product {  // a row of `in` values becomes one of `out`, `rows` times
  MatrixSize size;
  std::int64_t rows = 0;
};

// Batched calls are attention's. Libraries that store columns first get the transposed problem: their n are the rows.
std::optional<Product> product_of(const CallShape& shape) {
  if (shape.batch != 1 || shape.k <= 0) return {};
  const bool by_rows = shape.order == CallShape::Order::kRowMajor;
  const std::int64_t out = by_rows ? shape.n : shape.m, rows = by_rows ? shape.m : shape.n;
  if (out <= 0 || rows <= 0) return {};
  return Product{{shape.k, out}, rows};
}

void count(const Calls& calls, std::map<MatrixSize, std::int64_t>& counts) {
  for (std::size_t i = 0; i < calls.size(); ++i) {
    if (const auto product = product_of(calls.shapes[calls.shape[i]])) ++counts[product->size];
  }
}

// The products of one pass as they come.
class Pass {
 public:
  bool separated() const { return logits_rows_ > 0; }
  bool complete() const { return separated() && !products_.empty(); }  // logits alone are no pass

  void add(const Product& product, bool separates, std::size_t call, std::int64_t begin_ns, std::int64_t end_ns) {
    if (separates) {
      logits_rows_ = std::max(logits_rows_, product.rows);
      logits_begin_ns_ = begin_ns, logits_end_ns_ = end_ns;
    } else {
      products_.push_back({product.rows, begin_ns, end_ns, call});
    }
  }

  // What an encoder makes of its input, a decoder looks at in every layer: products with the encoder's rows come first,
  // and again between those of the decoder.
  std::size_t products_of_encoder() const {
    const std::int64_t rows = products_.front().rows;
    std::size_t first = 0;
    while (first < products_.size() && products_[first].rows == rows) ++first;
    std::size_t again = 0, fewer = 0;
    for (std::size_t i = first; i < products_.size(); ++i) {
      again += products_[i].rows == rows ? 1 : 0;
      fewer += products_[i].rows < rows ? 1 : 0;
    }
    return first >= 2 && again >= 2 && fewer >= 2 && again + fewer == products_.size() - first ? first : 0;
  }

  MatchedPass encoder(std::size_t count) const {
    MatchedPass out = of(0, count);
    out.of = MatchedPass::Of::kEncoder;
    return out;
  }

  MatchedPass without_encoder(std::size_t count) const {
    MatchedPass out = of(count, products_.size());
    if (count > 0) {  // its own are those that the encoder's are not
      std::map<std::int64_t, std::int64_t> own;
      for (std::size_t i = count; i < products_.size(); ++i) {
        if (products_[i].rows != products_.front().rows) ++own[products_[i].rows];
      }
      out.rows = most_common(own);
    }
    out.begin_ns = std::min(out.begin_ns, logits_begin_ns_);
    out.end_ns = std::max(out.end_ns, logits_end_ns_);
    out.logits_rows = logits_rows_;
    return out;
  }
  std::size_t size() const { return products_.size() + 1; }
  std::size_t call(std::size_t product) const { return products_[product].call; }

 private:
  struct Made {
    std::int64_t rows = 0, begin_ns = 0, end_ns = 0;
    std::size_t call = 0;
  };

  MatchedPass of(std::size_t first, std::size_t end) const {
    MatchedPass out{.begin_ns = products_[first].begin_ns, .share = kRepeatedShare};
    std::map<std::int64_t, std::int64_t> rows;
    for (std::size_t i = first; i < end; ++i) {
      ++rows[products_[i].rows];
      out.end_ns = std::max(out.end_ns, products_[i].end_ns);
    }
    out.rows = most_common(rows);
    return out;
  }

  std::int64_t logits_rows_ = 0, logits_begin_ns_ = 0, logits_end_ns_ = 0;
  std::vector<Made> products_;  // but for the logits
};

struct Found {
  MatchedPass pass;
  std::size_t products = 0;
  std::size_t first_call = 0, end_call = 0;
};

// Passes of one thread and segment: calls [begin, end).
void find_passes(const Calls& calls, const MatrixSize& separator, const std::set<MatrixSize>& drafts, std::size_t begin,
                 std::size_t end, std::vector<Found>& out) {
  Pass pass;
  MatrixSize logits;  // those of the pass
  std::size_t first = begin;
  const auto add = [&](MatchedPass found, std::size_t products, std::size_t from, std::size_t to) {
    found.thread_id = calls.thread_id[begin];
    found.segment = calls.segment[begin];
    out.push_back({found, products, from, to});
  };
  const auto close = [&](std::size_t at) {
    if (pass.complete()) {
      const bool draft = logits != separator;
      const std::size_t encoder = draft ? 0 : pass.products_of_encoder();
      const std::size_t middle = encoder > 0 ? pass.call(encoder) : first;
      if (encoder > 0) add(pass.encoder(encoder), encoder, first, middle);
      MatchedPass found = pass.without_encoder(encoder);
      if (draft) found.of = MatchedPass::Of::kDraft;
      add(found, pass.size() - encoder, middle, at);
    }
    pass = {};
    first = at;
  };
  for (std::size_t i = begin; i < end; ++i) {
    const auto product = product_of(calls.shapes[calls.shape[i]]);
    if (!product) continue;
    const bool separates = product->size == separator || drafts.contains(product->size);
    // Logits made in parts follow each other; any other product behind them begins the next pass.
    if (pass.separated() && (!separates || product->size != logits)) close(i);
    if (separates) logits = product->size;
    pass.add(*product, separates, i, calls.begin_ns[i], calls.end_ns[i]);
  }
  close(end);
}

using Counts = std::map<MatrixSize, std::int64_t>;

double elements(const MatrixSize& matrix) {
  return static_cast<double>(matrix.first) * static_cast<double>(matrix.second);
}

// Smaller models with the same vocabulary.
std::set<MatrixSize> drafts_of(const Calls& calls, const MatrixSize& separator) {
  std::set<MatrixSize> out;
  if (separator.second < kVocabulary * separator.first) return out;
  Counts counts;
  count(calls, counts);
  for (const auto& [size, times] : counts) {
    if (times >= kLeastRepetitions && size.second == separator.second && size.first < separator.first) out.insert(size);
  }
  return out;
}

// How often a pass is made, if the counts of nearly all products are multiples of it: the smallest such number.
std::int64_t passes_by_counts(const Counts& counts) {
  constexpr double kNearly = 0.9, kOff = 0.05;
  std::set<std::int64_t> tried;
  double all = 0;
  for (const auto& [size, times] : counts) {
    if (times >= kLeastRepetitions) tried.insert(times);
    all += times;
  }
  for (const std::int64_t passes : tried) {
    double explained = 0;
    for (const auto& [size, times] : counts) {
      const double each = static_cast<double>(times) / static_cast<double>(passes);
      const double off = std::abs(each - std::max(1.0, std::round(each)));
      if (off <= kOff * each) explained += times;
    }
    if (explained >= kNearly * all) return passes;
  }
  return 0;
}

// Of the products that come `passes` times the one that the program pauses longest behind: passes end there.
std::optional<MatrixSize> last_of_pass(const Calls& calls, const Counts& counts, std::int64_t passes) {
  std::map<MatrixSize, std::vector<std::int64_t>> pauses;
  for (std::size_t i = 0; i + 1 < calls.size(); ++i) {
    const auto product = product_of(calls.shapes[calls.shape[i]]);
    if (!product || counts.at(product->size) != passes || calls.thread_id[i] != calls.thread_id[i + 1]) continue;
    pauses[product->size].push_back(calls.begin_ns[i + 1] - calls.end_ns[i]);
  }
  std::optional<MatrixSize> best;
  std::int64_t longest = -1;
  for (auto& [size, times] : pauses) {
    std::ranges::nth_element(times, times.begin() + std::ssize(times) / 2);
    const std::int64_t median = times[times.size() / 2];
    if (median > longest) longest = median, best = size;
  }
  return best;
}

}  // namespace

std::int64_t most_common(const std::map<std::int64_t, std::int64_t>& counts) {
  std::int64_t best = 0, most = 0;
  for (const auto& [value, times] : counts) {
    if (times > most) best = value, most = times;
  }
  return best;
}

std::optional<MatrixSize> separating_matrix(const Calls& calls, const Calls& captured) {
  std::map<MatrixSize, std::int64_t> counts, in_graphs;
  count(calls, counts);
  count(captured, in_graphs);
  for (const auto& [size, times] : in_graphs) counts[size] += std::max(times, kLeastRepetitions);  // launched often
  std::optional<MatrixSize> largest;
  std::int64_t most = 0;
  for (const auto& [size, times] : counts) {
    if (times < kLeastRepetitions) continue;
    most = std::max(most, times);
    if (!largest || elements(size) > elements(*largest)) largest = size;
  }
  // Logits come once a pass, other products in every layer. A product that comes as often as any other is in a layer.
  if (!largest || 2 * counts[*largest] <= most || !in_graphs.empty()) return largest;
  const std::int64_t passes = passes_by_counts(counts);
  if (passes == 0 || 2 * passes > counts[*largest]) return largest;
  const std::optional<MatrixSize> last = last_of_pass(calls, counts, passes);
  return last ? last : largest;
}

Matches repeated_passes(const Calls& calls, const MatrixSize& separator) {
  const std::set<MatrixSize> drafts = drafts_of(calls, separator);
  std::vector<Found> found;
  for_each_segment(
      calls, [&](std::size_t begin, std::size_t end) { find_passes(calls, separator, drafts, begin, end, found); });
  std::map<MatchedPass::Of, std::map<std::int64_t, std::int64_t>> sizes;
  for (const Found& pass : found) ++sizes[pass.pass.of][static_cast<std::int64_t>(pass.products)];
  Matches out;
  out.calls.resize(calls.size());
  for (const Found& pass : found) {
    const std::int64_t usual = most_common(sizes[pass.pass.of]);
    if (usual < 2 || pass.products < kLeastOfUsual * usual) continue;
    for (std::size_t i = pass.first_call; i < pass.end_call; ++i) {
      out.calls[i].pass = static_cast<std::int32_t>(out.passes.size());
    }
    out.passes.push_back(pass.pass);
  }
  return out;
}

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
    const double weight = std::max<std::int64_t>(sequence.device_ns[i], 1);
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
    if (i > 0) place.pause_ns += sequence.begin_ns[i] - sequence.begin_ns[i - 1];
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
