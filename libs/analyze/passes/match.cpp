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
  }

  // The calls begin..end of one thread and segment.
  void match(std::size_t begin, std::size_t end) {
    segment_ = calls_.segment[begin];
    thread_id_ = calls_.thread_id[begin];
    may_go_back_ = expect_[static_cast<std::size_t>(segment_)] != Expect::kForward;
    may_go_forward_ = expect_[static_cast<std::size_t>(segment_)] != Expect::kBackward;
    pass_ = last_forward_ = kNone;
    if (!may_go_forward_) open_backward(0);
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
    if ((done_[slot] & kWeight) == 0 && same(s.k) && ((s.m == in && s.n == out) || (s.m == out && s.n == in)))
      return kWeight;
    if ((done_[slot] & kInput) != 0) return std::nullopt;
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

  // A pass back begins with the gradients of the last product; of those before it, that of the weights is clear enough.
  bool begins_backward(const CallShape& shape) {
    if (last_forward_ == kNone || out_.passes[last_forward_].share < 0.5) return false;
    const std::int64_t rows = out_.passes[last_forward_].rows;
    done_.assign(slots_.size(), 0);
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
    done_.assign(slots_.size(), 0);
    back_at_ = slots_.empty() ? 0 : slots_.size() - 1;
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

  void note(std::uint32_t call, std::int32_t slot) {
    MatchedPass& pass = out_.passes[pass_];
    if (found_count_ == 0) pass.begin_ns = calls_.begin_ns[call];
    pass.end_ns = std::max(pass.end_ns, calls_.end_ns[call]);
    const auto most = static_cast<std::uint8_t>(pass.backward ? 2 : 1);
    if (found_[static_cast<std::size_t>(slot)] < most) {
      ++found_[static_cast<std::size_t>(slot)];
      ++found_count_;
    }
    pass.share = static_cast<double>(found_count_) / static_cast<double>(slots_.size() * most);
    out_.calls[call] = {.pass = pass_, .slot = slot};
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
  std::vector<bool> could_be_;  // by shape
  std::int32_t widest_layer_ = 0;

  std::int64_t thread_id_ = 0;
  std::int32_t segment_ = kNone;
  bool may_go_forward_ = true, may_go_back_ = true;
  std::vector<std::uint32_t> candidates_;  // calls of the segment that could be products
  std::vector<CallRun> runs_;
  std::size_t run_ = 0;
  std::int32_t pass_ = kNone, last_forward_ = kNone;
  std::size_t next_group_ = 0, back_at_ = 0;
  std::vector<std::uint8_t> done_;   // backward, by slot
  std::vector<std::uint8_t> found_;  // by slot
  std::size_t found_count_ = 0;
};

}  // namespace

SizeCounts count_sizes(const Calls& calls) {
  std::vector<std::int64_t> by_shape(calls.shapes.size());
  for (std::size_t i = 0; i < calls.size(); ++i) {
    if (calls.segment[i] != kNone) ++by_shape[calls.shape[i]];
  }
  SizeCounts counts;
  for (std::size_t i = 0; i < by_shape.size(); ++i) {
    const CallShape& s = calls.shapes[i];
    if (s.batch != 1 || by_shape[i] == 0) continue;
    counts[{s.k, s.n}] += by_shape[i];
    if (s.m != s.n) counts[{s.k, s.m}] += by_shape[i];
  }
  return counts;
}

Matches match_calls(const Products& products, const Calls& calls, const std::vector<Expect>& expect) {
  Matches out;
  out.calls.resize(calls.size());
  Matcher matcher(products, calls, expect, out);
  for (std::size_t begin = 0; begin < calls.size();) {
    std::size_t end = begin + 1;
    while (end < calls.size() && calls.thread_id[end] == calls.thread_id[begin] &&
           calls.segment[end] == calls.segment[begin]) {
      ++end;
    }
    if (calls.segment[begin] != kNone) matcher.match(begin, end);
    begin = end;
  }
  match_cores(products, calls, out);
  return out;
}

}  // namespace llmprof::analyze
