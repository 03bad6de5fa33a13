// Over time: requests that run and wait, use of the KV cache, tokens per second.
#include <algorithm>
#include <array>

#include "pictures/requests.h"
#include "trace/chunk_row.h"

namespace llmprof::pictures {
namespace {

constexpr std::int64_t kPixels = 400;
constexpr std::size_t kRateBins = 120;

struct Change {
  std::int64_t ts_ns;
  int waiting, running, there;  // there: where it is not known which of the two
};

void add_changes(const RequestLane& lane, std::vector<Change>& changes) {
  const analyze::RequestFigures& own = lane.figures;
  const std::int64_t end_ns = own.end_ns.value_or(own.last_token_ns.value_or(lane.end_ns()));
  const auto first = std::ranges::find_if(lane.parts, [](const RequestPart& part) { return part.steps > 0; });
  if (first == lane.parts.end() && !own.scheduled_ns) {
    changes.push_back({own.sent_ns.value_or(own.arrival_ns), 0, 0, 1});
    changes.push_back({end_ns, 0, 0, -1});
    return;
  }
  const std::int64_t run_ns = std::min(end_ns, first != lane.parts.end() ? first->begin_ns : *own.scheduled_ns);
  changes.push_back({own.arrival_ns, 1, 0, 0});
  changes.push_back({run_ns, -1, 1, 0});
  changes.push_back({end_ns, 0, -1, 0});
  for (const RequestPart& part : lane.parts) {
    if (part.state != RequestState::kPreempted || part.begin_ns < run_ns || part.end_ns > end_ns) continue;
    changes.push_back({part.begin_ns, 1, -1, 0});
    changes.push_back({part.end_ns, -1, 1, 0});
  }
}

// What holds until the next reading, as the lowest and highest of each pixel.
class Levels {
 public:
  Levels(const char* name, const char* unit, Window span)
      : span_(span), pixel_ns_(std::max<std::int64_t>(1, (span.end_ns - span.begin_ns) / kPixels)) {
    curve.name = name, curve.unit = unit;
  }
  void add(std::int64_t ts_ns, double value) {
    const std::int64_t pixel = std::max<std::int64_t>(0, ts_ns - span_.begin_ns) / pixel_ns_;
    const std::int64_t begin_ns = span_.begin_ns + pixel * pixel_ns_;
    if (!curve.ts_ns.empty() && begin_ns > curve.ts_ns.back() + pixel_ns_) {  // between them it did not change
      curve.ts_ns.push_back(curve.ts_ns.back() + pixel_ns_);
      curve.low.push_back(last_);
      curve.high.push_back(last_);
    }
    if (curve.ts_ns.empty() || begin_ns > curve.ts_ns.back()) {
      const double before = curve.ts_ns.empty() ? value : last_;
      curve.ts_ns.push_back(begin_ns);
      const bool at_once = ts_ns == begin_ns;  // else what was before holds for a part of the pixel
      curve.low.push_back(at_once ? value : std::min(before, value));
      curve.high.push_back(at_once ? value : std::max(before, value));
    } else {
      curve.low.back() = std::min(curve.low.back(), value);
      curve.high.back() = std::max(curve.high.back(), value);
    }
    last_ = value;
  }
  Curve curve;

 private:
  Window span_;
  std::int64_t pixel_ns_;
  double last_ = 0;
};

void add_counts(const std::vector<RequestLane>& lanes, Window span, std::vector<Curve>& out) {
  std::vector<Change> changes;
  for (const RequestLane& lane : lanes) add_changes(lane, changes);
  std::ranges::stable_sort(changes, {}, &Change::ts_ns);
  struct Count {
    int Change::*change;
    Levels levels;
    int now = 0;
  };
  std::array counts = {Count{&Change::running, Levels("running", "", span)},
                       Count{&Change::waiting, Levels("waiting", "", span)},
                       Count{&Change::there, Levels("waiting or running", "", span)}};
  for (Count& count : counts) {
    bool any = false;
    for (std::size_t i = 0; i < changes.size(); ++i) {
      count.now += changes[i].*count.change;
      any = any || changes[i].*count.change != 0;
      const bool last = i + 1 == changes.size() || changes[i + 1].ts_ns != changes[i].ts_ns;  // of this moment
      if (last) count.levels.add(changes[i].ts_ns, count.now);
    }
    count.levels.curve.group = "requests";
    if (any) out.push_back(std::move(count.levels.curve));
  }
}

Result<void> add_blocks(const trace::Run& run, Window span, std::vector<Curve>& out) {
  Levels blocks("KV cache in use", "share", span);
  LLMPROF_TRY(trace::each_row(
      run, "SELECT ts_ns, tokens, context FROM request_event WHERE event = 'blocks' AND context > 0 ORDER BY ts_ns",
      [&](const trace::ChunkRow& row) {
        if (row[0] >= span.begin_ns && row[0] <= span.end_ns)
          blocks.add(row[0], static_cast<double>(row[1]) / static_cast<double>(row[2]));
      }));
  blocks.curve.group = "KV cache";
  if (!blocks.curve.ts_ns.empty()) out.push_back(std::move(blocks.curve));
  return {};
}

// Tokens of each piece of the time. Those of a step are spread evenly over it.
class Rates {
 public:
  Rates(const char* name, Window span)
      : span_(span), bin_ns_((span.end_ns - span.begin_ns + std::int64_t{kRateBins}) / std::int64_t{kRateBins}) {
    curve_.group = "tokens", curve_.name = name, curve_.unit = "tokens/s";
  }
  void add(std::int64_t begin_ns, std::int64_t end_ns, std::int64_t tokens) {
    if (tokens <= 0 || begin_ns < span_.begin_ns || end_ns > span_.end_ns + bin_ns_) return;
    end_ns = std::max(end_ns, begin_ns + 1), any_ = true;
    for (std::int64_t bin = (begin_ns - span_.begin_ns) / bin_ns_; bin < std::int64_t{kRateBins}; ++bin) {
      const std::int64_t from_ns = span_.begin_ns + bin * bin_ns_;
      const std::int64_t part_ns = std::min(end_ns, from_ns + bin_ns_) - std::max(begin_ns, from_ns);
      if (part_ns <= 0) break;
      bins_[static_cast<std::size_t>(bin)] +=
          static_cast<double>(tokens) * static_cast<double>(part_ns) / static_cast<double>(end_ns - begin_ns);
    }
  }
  bool put(std::vector<Curve>& out) {
    if (!any_) return false;
    for (std::size_t i = 0; i < bins_.size(); ++i) {
      curve_.ts_ns.push_back(span_.begin_ns + static_cast<std::int64_t>(i) * bin_ns_);
      curve_.low.push_back(bins_[i] * 1e9 / static_cast<double>(bin_ns_));
    }
    curve_.high = curve_.low;
    out.push_back(std::move(curve_));
    return true;
  }

 private:
  Window span_;
  std::int64_t bin_ns_;
  Curve curve_;
  std::array<double, kRateBins> bins_{};
  bool any_ = false;
};

// Without steps, tokens as they were delivered.
Result<void> add_rates(const trace::Run& run, Window span, std::vector<Curve>& out) {
  Rates outputs("output tokens", span), prompts("tokens of prompts", span), delivered("output tokens", span);
  LLMPROF_TRY(trace::each_row(
      run,
      "SELECT s.turn_ns, s.end_ns, count(*) FILTER (m.sampled), coalesce(sum(m.tokens) FILTER (m.prefill), 0)::BIGINT "
      "FROM step_member AS m JOIN step AS s ON s.id = m.step_id WHERE m.request_id IS NOT NULL GROUP BY s.id, "
      "s.turn_ns, s.end_ns",
      [&](const trace::ChunkRow& row) {
        outputs.add(row[0], row[1], row[2]);
        prompts.add(row[0], row[1], row[3]);
      }));
  const bool any = outputs.put(out);
  if (prompts.put(out) || any) return {};
  LLMPROF_TRY(trace::each_row(run, "SELECT ts_ns, tokens FROM request_token",
                              [&](const trace::ChunkRow& row) { delivered.add(row[0], row[0] + 1, row[1]); }));
  delivered.put(out);
  return {};
}

}  // namespace

Result<std::vector<Curve>> request_curves(const trace::Run& run, const std::vector<RequestLane>& lanes, Window span) {
  std::vector<Curve> out;
  add_counts(lanes, span, out);
  LLMPROF_TRY(add_blocks(run, span, out));
  LLMPROF_TRY(add_rates(run, span, out));
  return out;
}

}  // namespace llmprof::pictures
