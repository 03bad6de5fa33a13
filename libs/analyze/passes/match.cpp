#include "analyze/passes/match.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <vector>

namespace llmprof::analyze {
namespace {

// What a call is if it multiplies by a matrix: which size, and rows.
struct Option {
  MatrixSize size;
  std::int64_t rows = 0;
};

// Activations lie in memory row by row, values of a row together: that tells rows from values. A call of one column is
// a product with a vector. What cannot be told is tried both ways, the likelier first.
std::array<Option, 2> options_of(const CallShape& s) {
  const Option plain{{s.k, s.n}, s.m}, flipped{{s.k, s.m}, s.n};
  const bool flip = s.n == 1 || s.order == CallShape::Order::kColumnMajor;
  return flip ? std::array{flipped, plain} : std::array{plain, flipped};
}

// Slots of one size that follow each other: their calls look alike, and only their number tells them apart.
struct Group {
  std::int32_t first = 0, count = 0;
  MatrixSize size;
  bool sampled = false, expert = false;
};

std::vector<Group> groups_of(const std::vector<Slot>& slots) {
  std::vector<Group> groups;
  for (std::size_t i = 0; i < slots.size(); ++i) {
    const Slot& slot = slots[i];
    if (!groups.empty() && !slot.expert && !groups.back().expert && groups.back().size == slot.size &&
        groups.back().sampled == slot.sampled) {
      ++groups.back().count;
    } else {
      groups.push_back({static_cast<std::int32_t>(i), 1, slot.size, slot.sampled, slot.expert});
    }
  }
  return groups;
}

// Calls of one shape that follow each other, calls that are no product of the model left out.
struct CallRun {
  std::uint32_t shape = 0;
  std::uint32_t first = 0, count = 0;  // into Matcher::candidates_
};

class Matcher {
 public:
  Matcher(const Products& products, const Calls& calls, const std::vector<Expect>& expect, Matches& out)
      : slots_(products.slots), calls_(calls), expect_(expect), out_(out) {
    groups_ = groups_of(slots_);
    for (const Slot& slot : slots_) {
      ++sizes_[slot.size];
      widest_layer_ = std::max(widest_layer_, slots_in_layer(slot.layer));
    }
    could_be_.reserve(calls.shapes.size());
    for (const CallShape& shape : calls.shapes) could_be_.push_back(could_be(shape));
    learn_ways_back();
  }

  // The calls begin..end of one thread and segment.
  void match(std::size_t begin, std::size_t end) {
    segment_ = calls_.segment[begin];
    thread_id_ = calls_.thread_id[begin];
    may_go_back_ = expect_[segment_] != Expect::kForward;
    may_go_forward_ = expect_[segment_] != Expect::kBackward;
    pass_ = last_forward_ = kNone;
    if (!may_go_forward_) open_backward(rows_back(begin, end));
    candidates_.clear();
    runs_.clear();
    for (std::size_t i = begin; i < end; ++i) {
      if (!could_be_[calls_.shape[i]]) continue;
      if (runs_.empty() || runs_.back().shape != calls_.shape[i]) {
        runs_.push_back({.shape = calls_.shape[i], .first = static_cast<std::uint32_t>(candidates_.size())});
      }
      ++runs_.back().count;
      candidates_.push_back(static_cast<std::uint32_t>(i));
    }
    for (run_ = 0; run_ < runs_.size(); ++run_) {
      const CallRun& run = runs_[run_];
      if (pass_ != kNone && out_.passes[pass_].backward) {
        if (!backward(run)) forward(run);
      } else if (!forward(run)) {
        backward(run);
      }
    }
    close();
  }

 private:
  // What most gradients of weights of a pass add up: its rows. 0: it is not known how they are laid out.
  std::int64_t rows_back(std::size_t begin, std::size_t end) const {
    std::map<std::int64_t, std::int64_t> rows;
    for (std::size_t i = begin; i < end; ++i) {
      const CallShape& shape = calls_.shapes[calls_.shape[i]];
      if (could_be_[calls_.shape[i]] && adds_up_rows(shape)) ++rows[shape.k];
    }
    const auto most = std::ranges::max_element(rows, {}, [](const auto& entry) { return entry.second; });
    return most == rows.end() ? 0 : most->first;
  }

  std::int32_t slots_in_layer(std::int32_t layer) const {
    return static_cast<std::int32_t>(
        std::count_if(slots_.begin(), slots_.end(), [&](const Slot& slot) { return slot.layer == layer; }));
  }
  // A product of the model, or of its gradients. Products with the weights are not batched.
  bool could_be(const CallShape& s) const {
    if (s.batch != 1) return false;
    const auto known = [&](std::int64_t in, std::int64_t out) {
      return sizes_.contains({in, out}) || sizes_.contains({out, in});
    };
    return known(s.k, s.n) || known(s.k, s.m) || known(s.m, s.n);
  }

  // Where forward and backward passes are known apart, they tell how a product is laid out forward, whether the
  // gradient of its input is laid out otherwise, and whether its weights have gradients at all: those that are not
  // trained have none.
  void learn_ways_back() {
    std::vector<std::int64_t> forward(calls_.shapes.size()), back(calls_.shapes.size());
    for (std::size_t i = 0; i < calls_.size(); ++i) {
      if (calls_.segment[i] == kNone) continue;
      const Expect expect = expect_[calls_.segment[i]];
      if (expect == Expect::kForward) ++forward[calls_.shape[i]];
      if (expect == Expect::kBackward) ++back[calls_.shape[i]];
    }
    std::map<MatrixSize, std::int64_t> most;
    for (std::size_t i = 0; i < calls_.shapes.size(); ++i) {
      const CallShape& s = calls_.shapes[i];
      if (!could_be_[i] || s.transposed == CallShape::Transposed::kUnknown) continue;
      const MatrixSize size = options_of(s).front().size;
      std::int64_t& times = most[size];
      if (forward[i] > times) times = forward[i], forward_as_[size] = s.transposed;
    }
    std::vector<MatrixSize> weights;  // sizes of gradients of weights, either way round
    for (std::size_t i = 0; i < calls_.shapes.size() && !forward_as_.empty(); ++i) {
      const CallShape& s = calls_.shapes[i];
      if (back[i] == 0 || s.transposed == CallShape::Transposed::kUnknown) continue;
      if (adds_up_rows(s)) {
        weights.insert(weights.end(), {{s.m, s.n}, {s.n, s.m}});
        continue;
      }
      const auto [in, out] = options_of(s).front().size;
      const auto of = forward_as_.find({out, in});
      if (of != forward_as_.end() && s.transposed != of->second) otherwise_back_ = true;
    }
    if (!otherwise_back_) return;
    for (const Slot& slot : slots_) frozen_.push_back(std::ranges::find(weights, slot.size) == weights.end());
  }

  // ---- forward ----------------------------------------------------------------------------------------------------

  bool forward(const CallRun& run) {
    if (!may_go_forward_) return false;
    for (const Option& option : options_of(calls_.shapes[run.shape])) {
      if (pass_ != kNone && !out_.passes[pass_].backward && continue_forward(run, option)) return true;
      if (groups_.empty() || groups_.front().size != option.size || !fits(run, groups_.front())) continue;
      const std::int64_t rows = rows_of(run, option, groups_.front());
      if (is_within_pass() && !second_follows(rows)) continue;  // it only looks like the first product of a pass
      open(false, rows);
      assign(run, groups_.front());
      next_group_ = 1;
      return true;
    }
    return false;
  }

  static bool fits(const CallRun& run, const Group& group) {
    return group.expert || run.count % static_cast<std::uint32_t>(group.count) == 0;
  }
  static std::int64_t rows_of(const CallRun& run, const Option& option, const Group& group) {
    return option.rows * static_cast<std::int64_t>(run.count) / group.count;
  }
  bool is_within_pass() const {
    return pass_ != kNone && !out_.passes[pass_].backward && next_group_ < groups_.size() &&
           !groups_[next_group_].sampled;
  }
  bool second_follows(std::int64_t rows) const {
    if (run_ + 1 >= runs_.size() || groups_.size() < 2) return false;
    const CallRun& next = runs_[run_ + 1];
    for (const Option& option : options_of(calls_.shapes[next.shape])) {
      if (option.size == groups_[1].size && fits(next, groups_[1]) && rows_of(next, option, groups_[1]) == rows)
        return true;
    }
    return false;
  }

  // The next group that fits, not farther away than a layer: not every product must go through BLAS.
  bool continue_forward(const CallRun& run, const Option& option) {
    const MatchedPass& pass = out_.passes[pass_];
    const auto fits_here = [&](std::size_t g) {
      const Group& group = groups_[g];
      if (group.size != option.size || !fits(run, group)) return false;
      return group.sampled || group.expert || rows_of(run, option, group) == pass.rows;
    };
    const std::size_t end = std::min(groups_.size(), next_group_ + static_cast<std::size_t>(widest_layer_) + 1);
    for (std::size_t g = next_group_; g < end; ++g) {
      if (fits_here(g)) return take(run, option, g);
    }
    for (std::size_t g = next_group_; g-- > 0 && groups_[g].expert;) {  // the next expert of the layer
      if (fits_here(g)) return take(run, option, g);
    }
    // The logits end a pass wherever it was thought to be.
    if (groups_.back().sampled && fits_here(groups_.size() - 1)) return take(run, option, groups_.size() - 1);
    return false;
  }

  bool take(const CallRun& run, const Option& option, std::size_t g) {
    if (groups_[g].sampled) out_.passes[pass_].logits_rows = rows_of(run, option, groups_[g]);
    assign(run, groups_[g]);
    next_group_ = g + 1;
    if (next_group_ == groups_.size()) close();
    return true;
  }

  void assign(const CallRun& run, const Group& group) {
    const std::uint32_t per_slot = std::max(1u, run.count / static_cast<std::uint32_t>(group.count));
    for (std::uint32_t i = 0; i < run.count; ++i) {
      const auto place = std::min(static_cast<std::int32_t>(i / per_slot), group.count - 1);
      note(candidates_[run.first + i], group.first + place);
    }
  }

  // ---- backward ---------------------------------------------------------------------------------------------------

  enum Done : std::uint8_t { kInput = 1, kWeight = 2 };

  // Each product has two on the way back: the gradients of its input and of its weights, in either order.
  std::optional<Done> gradient(const CallShape& s, std::size_t slot, std::int64_t rows) const {
    const auto [in, out] = slots_[slot].size;
    const std::int64_t expected = slots_[slot].sampled ? 0 : rows;
    const auto same = [&](std::int64_t found) { return expected == 0 || found == expected; };
    if ((done_[slot] & kWeight) == 0 && same(s.k) && (!otherwise_back_ || adds_up_rows(s)) &&
        ((s.m == in && s.n == out) || (s.m == out && s.n == in)))
      return kWeight;
    if ((done_[slot] & kInput) != 0 || is_as_forward(s, slots_[slot].size)) return std::nullopt;
    for (const Option& option : options_of(s)) {
      if (option.size == MatrixSize{out, in} && same(option.rows)) return kInput;
    }
    return std::nullopt;
  }

  bool backward(const CallRun& run) {
    if (!may_go_back_) return false;
    bool any = false;
    for (std::uint32_t i = 0; i < run.count; ++i) any = backward(candidates_[run.first + i]) || any;
    return any;
  }

  bool backward(std::uint32_t call) {
    const CallShape& shape = calls_.shapes[calls_.shape[call]];
    if ((pass_ == kNone || !out_.passes[pass_].backward) && !begins_backward(shape)) return false;
    const auto far = std::min(back_at_, static_cast<std::size_t>(widest_layer_));
    if (recomputes(call, shape)) return true;
    for (std::size_t slot = back_at_ + 1; slot-- > back_at_ - far;) {
      const auto done = gradient(shape, slot, out_.passes[pass_].rows);
      if (!done) continue;
      if (out_.passes[pass_].rows == 0 && *done == kWeight && !slots_[slot].sampled) out_.passes[pass_].rows = shape.k;
      done_[slot] |= *done;
      note(call, static_cast<std::int32_t>(slot));
      while (back_at_ > 0 && done_[back_at_] == (kInput | kWeight)) --back_at_;
      if (back_at_ == 0 && done_[0] == (kInput | kWeight)) close();
      return true;
    }
    return false;
  }

  // Laid out as the product itself is forward, where the gradient of its input is not.
  bool is_as_forward(const CallShape& s, const MatrixSize& size) const {
    if (!otherwise_back_) return false;
    const auto known = forward_as_.find(size);
    return known != forward_as_.end() && s.transposed == known->second;
  }

  // Layers whose results were not kept are computed again before their gradients are: product after product, of the
  // layer that comes next on the way back.
  bool recomputes(std::uint32_t call, const CallShape& shape) {
    const Option option = options_of(shape).front();
    std::int64_t& rows = out_.passes[pass_].rows;
    if (!is_as_forward(shape, option.size) || adds_up_rows(shape) || (rows > 0 && option.rows != rows)) return false;
    const std::int32_t layer = slots_[back_at_].layer;
    std::size_t first = back_at_;
    while (first > 0 && slots_[first - 1].layer == layer) --first;
    const bool goes_on = recomputed_ != kNone && static_cast<std::size_t>(recomputed_) >= first &&
                         static_cast<std::size_t>(recomputed_) <= back_at_;
    for (std::size_t slot = goes_on ? static_cast<std::size_t>(recomputed_) + 1 : first; slot <= back_at_; ++slot) {
      if (slots_[slot].size != option.size) continue;
      if (!slots_[slot].sampled) rows = option.rows;
      recomputed_ = static_cast<std::int32_t>(slot);
      note(call, recomputed_, true);
      return true;
    }
    return false;
  }

  // A pass back begins with the gradients of the last product; of those before it, that of the weights is clear enough.
  bool begins_backward(const CallShape& shape) {
    if (last_forward_ == kNone || out_.passes[last_forward_].share < 0.5) return false;
    const std::int64_t rows = out_.passes[last_forward_].rows;
    expect_gradients();
    const std::size_t last = slots_.size() - 1;
    const std::size_t far = std::min(last, static_cast<std::size_t>(widest_layer_));
    for (std::size_t slot = last + 1; slot-- > last - far;) {
      const auto found = gradient(shape, slot, rows);
      if (!found || (slot != last && *found != kWeight)) continue;
      open_backward(rows);
      return true;
    }
    return false;
  }

  void open_backward(std::int64_t rows) {
    open(true, rows);
    expect_gradients();
    back_at_ = slots_.empty() ? 0 : slots_.size() - 1;
    recomputed_ = kNone;
  }

  void expect_gradients() {
    done_.assign(slots_.size(), 0);
    for (std::size_t i = 0; i < frozen_.size(); ++i) done_[i] = frozen_[i] ? kWeight : 0;
  }

  // ---- passes -----------------------------------------------------------------------------------------------------

  void open(bool backward, std::int64_t rows) {
    close();
    pass_ = static_cast<std::int32_t>(out_.passes.size());
    out_.passes.push_back({.thread_id = thread_id_, .backward = backward, .segment = segment_, .rows = rows});
    found_.assign(slots_.size(), 0);
    found_count_ = 0;
    if (!backward) last_forward_ = pass_;
  }

  void note(std::uint32_t call, std::int32_t slot, bool again = false) {
    MatchedPass& pass = out_.passes[pass_];
    if (pass.end_ns == 0) pass.begin_ns = calls_.begin_ns[call];
    pass.end_ns = std::max(pass.end_ns, calls_.end_ns[call]);
    out_.calls[call] = {.pass = pass_, .slot = slot, .recomputed = again};
    if (again) return;
    const auto most = [&](std::size_t i) { return !pass.backward || (!frozen_.empty() && frozen_[i]) ? 1 : 2; };
    if (found_[slot] < most(static_cast<std::size_t>(slot))) {
      ++found_[slot];
      ++found_count_;
    }
    const auto frozen = static_cast<std::size_t>(pass.backward ? std::ranges::count(frozen_, true) : 0);
    pass.share =
        static_cast<double>(found_count_) / static_cast<double>(slots_.size() * (pass.backward ? 2 : 1) - frozen);
  }

  void close() {
    pass_ = kNone;
    next_group_ = 0;
  }

  const std::vector<Slot>& slots_;
  const Calls& calls_;
  const std::vector<Expect>& expect_;
  Matches& out_;
  std::vector<Group> groups_;
  std::map<MatrixSize, int> sizes_;
  std::vector<bool> could_be_;                              // by shape
  std::map<MatrixSize, CallShape::Transposed> forward_as_;  // how products are laid out forward, where it is known
  bool otherwise_back_ = false;                             // gradients of inputs are laid out otherwise
  std::vector<bool> frozen_;                                // by slot: its weights have no gradient; empty: all have
  std::int32_t widest_layer_ = 0;

  std::int64_t thread_id_ = 0;
  std::int32_t segment_ = kNone;
  bool may_go_forward_ = true, may_go_back_ = true;
  std::vector<std::uint32_t> candidates_;  // calls of the segment that could be products
  std::vector<CallRun> runs_;
  std::size_t run_ = 0;
  std::int32_t pass_ = kNone, last_forward_ = kNone;
  std::size_t next_group_ = 0, back_at_ = 0;
  std::int32_t recomputed_ = kNone;  // the last slot that was computed again
  std::vector<std::uint8_t> done_;   // backward, by slot
  std::vector<std::uint8_t> found_;  // by slot
  std::size_t found_count_ = 0;
};

}  // namespace

SizeCounts count_sizes(const Calls& calls, Reading reading, const std::vector<Expect>& expect) {
  std::vector<std::int64_t> by_shape(calls.shapes.size());
  for (std::size_t i = 0; i < calls.size(); ++i) {
    if (calls.segment[i] == kNone) continue;
    const auto segment = static_cast<std::size_t>(calls.segment[i]);
    if (segment >= expect.size() || expect[segment] != Expect::kBackward) ++by_shape[calls.shape[i]];
  }
  SizeCounts counts;
  for (std::size_t i = 0; i < by_shape.size(); ++i) {
    const CallShape& s = calls.shapes[i];
    if (s.batch != 1 || by_shape[i] == 0) continue;
    const bool known = reading == Reading::kUsual && s.order != CallShape::Order::kUnknown;
    const std::array<Option, 2> options = options_of(s);
    counts[options[0].size] += by_shape[i];
    if (!known && s.m != s.n) counts[options[1].size] += by_shape[i];
  }
  return counts;
}

Matches match_calls(const Products& products, const Calls& calls, const std::vector<Expect>& expect) {
  Matches out;
  out.calls.resize(calls.size());
  Matcher matcher(products, calls, expect, out);
  for_each_segment(calls, [&](std::size_t begin, std::size_t end) { matcher.match(begin, end); });
  match_cores(products, calls, out);
  return out;
}

}  // namespace llmprof::analyze
