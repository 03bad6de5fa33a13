#include "analyze/passes/repeated_products.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <tuple>

namespace llmprof::analyze {
namespace {

constexpr double kLeastGradients = 0.15;  // of the products with weights; a third where everything is trained
constexpr std::size_t kLeastPasses = 2;

enum class Role : std::uint8_t { kOther, kPass, kGradient };  // of a call: attention's, with weights, of weights

struct Product {
  std::int64_t in = 0, out = 0, rows = 0;
  auto operator<=>(const Product&) const = default;
};

// Libraries that store columns first get the transposed problem; what cannot be told is read both ways.
std::vector<Product> readings(const CallShape& s) {
  const Product by_rows{s.k, s.n, s.m}, by_columns{s.k, s.m, s.n};
  if (s.order == CallShape::Order::kRowMajor) return {by_rows};
  if (s.order == CallShape::Order::kColumnMajor) return {by_columns};
  return {by_rows, by_columns};
}

// A call over k rows whose result is as large as the weights of a product that was made for k rows.
std::vector<Role> roles_of(const std::vector<CallShape>& shapes) {
  std::set<Product> products;
  for (const CallShape& shape : shapes) {
    if (shape.batch != 1) continue;
    for (const Product& product : readings(shape)) products.insert(product);
  }
  std::vector<Role> roles;
  for (const CallShape& s : shapes) {
    if (s.batch != 1 || s.m <= 0 || s.n <= 0 || s.k <= 0) {
      roles.push_back(Role::kOther);
      continue;
    }
    const bool fits = products.contains({s.m, s.n, s.k}) || products.contains({s.n, s.m, s.k});
    const bool gradient = fits && adds_up_rows(s);
    roles.push_back(gradient ? Role::kGradient : Role::kPass);
  }
  return roles;
}

class Process {  // the calls of one process, by time
 public:
  Process(const Calls& calls, const std::vector<Role>& roles, std::vector<std::size_t> order)
      : calls_(calls), roles_(roles), order_(std::move(order)) {}

  std::vector<TrainingPass> find(const Updates& updates) {
    std::vector<Stretch> back = backward_stretches();
    if (back.size() < kLeastPasses) return {};
    widen(back);
    find_usual(back);
    std::vector<TrainingPass> passes;
    std::size_t from = 0;
    for (const Stretch& stretch : back) {
      add_forward(from, stretch.first, passes);
      passes.push_back(pass(TrainingPass::Kind::kBackward, stretch.first, stretch.last + 1));
      passes.back().back_thread_id = passes.back().thread_id;
      if (passes.size() > 1 && passes[passes.size() - 2].kind == TrainingPass::Kind::kForward) {
        TrainingPass &forward = passes[passes.size() - 2], &backward = passes.back();
        forward.end_ns = std::max(forward.end_ns, backward.begin_ns);  // the loss lies between
        backward.rows = forward.rows, backward.tokens = forward.tokens, backward.thread_id = forward.thread_id;
      }
      from = stretch.last + 1;
    }
    add_forward(from, order_.size(), passes);
    add_updates(updates, passes);
    return passes;
  }

 private:
  struct Stretch {
    std::size_t first = 0, last = 0;  // into order_
  };
  Role role(std::size_t place) const { return roles_[calls_.shape[order_[place]]]; }
  std::int64_t begin_ns(std::size_t place) const { return calls_.begin_ns[order_[place]]; }

  // Gaps within a backward pass are short, gaps that hold forward passes are long: the widest jump between lengths
  // tells them apart. 0: there is none.
  static std::size_t shortest_forward(std::vector<std::size_t> gaps) {
    std::ranges::sort(gaps);
    std::size_t found = 0;
    double widest = 2;
    for (std::size_t i = 1; i < gaps.size(); ++i) {
      const double jump = static_cast<double>(gaps[i] + 1) / static_cast<double>(gaps[i - 1] + 1);
      if (jump > widest) widest = jump, found = gaps[i];
    }
    return found;
  }

  // Products of weight gradients with no forward pass between them belong together.
  std::vector<Stretch> backward_stretches() const {
    std::vector<std::size_t> places, before;  // of gradients; products with weights up to there
    std::size_t products = 0;
    for (std::size_t i = 0; i < order_.size(); ++i) {
      if (role(i) == Role::kGradient) places.push_back(i), before.push_back(products);
      if (role(i) == Role::kPass) ++products;
    }
    if (places.size() < kLeastGradients * static_cast<double>(products + places.size())) return {};
    std::vector<std::size_t> gaps;
    for (std::size_t i = 1; i < places.size(); ++i) gaps.push_back(before[i] - before[i - 1]);
    if (gaps.empty()) return {};
    const std::size_t forward = shortest_forward(gaps);
    if (forward == 0) return {};
    std::vector<Stretch> out;
    for (std::size_t i = 0; i < places.size(); ++i) {
      if (i == 0 || gaps[i - 1] >= forward) {
        out.push_back({places[i], places[i]});
      } else {
        out.back().last = places[i];
      }
    }
    return out;
  }

  // Gradients of inputs are made beside those of weights, before or behind: such calls are mostly seen within
  // stretches, unlike products of forward passes, even where some of these are made again on the way back.
  void widen(std::vector<Stretch>& back) const {
    std::vector<std::int64_t> within(calls_.shapes.size()), all(calls_.shapes.size());
    for (std::size_t i = 0; i < order_.size(); ++i) ++all[calls_.shape[order_[i]]];
    for (const Stretch& stretch : back) {
      for (std::size_t i = stretch.first; i <= stretch.last; ++i) ++within[calls_.shape[order_[i]]];
    }
    std::map<std::int64_t, std::int64_t> forward;  // how products outside are transposed
    for (std::size_t shape = 0; shape < all.size(); ++shape) {
      if (roles_[shape] == Role::kPass)
        forward[static_cast<std::int64_t>(calls_.shapes[shape].transposed)] += all[shape] - within[shape];
    }
    const auto usual = static_cast<CallShape::Transposed>(most_common(forward));
    std::map<std::int64_t, std::int64_t> outside;  // by thread
    for (std::size_t i = 0, next = 0; i < order_.size(); ++i) {
      while (next < back.size() && back[next].last < i) ++next;
      if (next == back.size() || i < back[next].first) ++outside[calls_.thread_id[order_[i]]];
    }
    const std::int64_t main = most_common(outside);
    const auto goes_back = [&](std::size_t place, std::size_t gradient) {
      const std::uint32_t shape = calls_.shape[order_[place]];
      if (role(place) != Role::kPass) return false;
      if (calls_.thread_id[order_[place]] != calls_.thread_id[order_[gradient]]) return false;
      return 4 * within[shape] > 3 * all[shape] || calls_.shapes[shape].transposed != usual;
    };
    // Where a thread of its own goes back, all that it does around is part of it: weights that are not trained have no
    // gradients that would show it.
    const auto of_own_thread = [&](std::size_t place, std::size_t gradient) {
      return role(place) == Role::kPass && calls_.thread_id[order_[place]] == calls_.thread_id[order_[gradient]] &&
             calls_.thread_id[order_[gradient]] != main;
    };
    for (Stretch& stretch : back) {
      if (stretch.first > 0 && goes_back(stretch.first - 1, stretch.first)) --stretch.first;
      if (stretch.last + 1 < order_.size() && goes_back(stretch.last + 1, stretch.last)) ++stretch.last;
      while (stretch.first > 0 && of_own_thread(stretch.first - 1, stretch.first)) --stretch.first;
      while (stretch.last + 1 < order_.size() && of_own_thread(stretch.last + 1, stretch.last)) ++stretch.last;
    }
  }

  TrainingPass pass(TrainingPass::Kind kind, std::size_t first, std::size_t end) const {
    TrainingPass out{.kind = kind,
                     .process_id = calls_.process_id[order_[first]],
                     .thread_id = calls_.thread_id[order_[first]],
                     .begin_ns = begin_ns(first)};
    std::map<std::int64_t, std::int64_t> rows, squares;
    for (std::size_t i = first; i < end; ++i) {
      const CallShape& shape = calls_.shapes[calls_.shape[order_[i]]];
      out.end_ns = std::max(out.end_ns, calls_.end_ns[order_[i]]);
      if (role(i) == Role::kPass) ++rows[readings(shape).front().rows];
      if (role(i) == Role::kOther && shape.m == shape.n && shape.m > 1) ++squares[shape.m];
    }
    out.rows = most_common(rows);
    const std::int64_t tokens = most_common(squares);
    if (tokens > 0 && out.rows % tokens == 0) out.tokens = tokens;
    return out;
  }

  void find_usual(const std::vector<Stretch>& back) {
    std::map<std::int64_t, std::int64_t> counts;
    for (std::size_t i = 1; i < back.size(); ++i) {
      std::int64_t products = 0;
      for (std::size_t place = back[i - 1].last + 1; place < back[i].first; ++place)
        products += role(place) == Role::kPass ? 1 : 0;
      ++counts[products];
    }
    usual_ = static_cast<std::size_t>(std::max<std::int64_t>(2, most_common(counts)));
  }

  // One forward pass before each backward pass; what else fits before it was not trained on.
  void add_forward(std::size_t first, std::size_t end, std::vector<TrainingPass>& out) {
    std::vector<std::size_t> places;
    for (std::size_t i = first; i < end; ++i) {
      if (role(i) == Role::kPass) places.push_back(i);
    }
    if (places.size() < 2) return;
    const bool last = end == order_.size();
    const std::size_t several = (places.size() + usual_ / 2) / usual_;
    for (std::size_t i = 0; i < std::max<std::size_t>(1, several); ++i) {
      const std::size_t from = i * usual_, to = i + 1 >= several ? places.size() : (i + 1) * usual_;
      if (from >= places.size()) break;
      const bool trained = !last && i + 1 >= several;
      // What was cut off, or is no pass, stays unnamed.
      if (!trained && to - from < usual_) continue;
      out.push_back(pass(trained ? TrainingPass::Kind::kForward : TrainingPass::Kind::kForwardOnly, places[from],
                         to < places.size() ? places[to] : end));
    }
  }

  // Launches that update, between a backward pass and what follows it.
  static void add_updates(const Updates& updates, std::vector<TrainingPass>& passes) {
    std::vector<TrainingPass> with;
    std::size_t at = 0;
    for (std::size_t i = 0; i < passes.size(); ++i) {
      with.push_back(passes[i]);
      if (passes[i].kind != TrainingPass::Kind::kBackward) continue;
      const std::int64_t until = i + 1 < passes.size() ? passes[i + 1].begin_ns : INT64_MAX;
      std::optional<TrainingPass> update;
      while (at < updates.size() && updates.begin_ns[at] < passes[i].begin_ns) ++at;
      for (; at < updates.size() && updates.begin_ns[at] < until; ++at) {
        if (updates.process_id[at] != passes[i].process_id) continue;
        if (!update) {
          update = {.kind = TrainingPass::Kind::kOptimizer,
                    .process_id = passes[i].process_id,
                    .thread_id = passes[i].thread_id,
                    .begin_ns = updates.begin_ns[at]};
        }
        update->end_ns = std::max(update->end_ns, updates.end_ns[at]);
      }
      if (!update) continue;
      with.back().end_ns = std::min(with.back().end_ns, update->begin_ns);
      with.push_back(*update);
    }
    passes = std::move(with);
  }

  const Calls& calls_;
  const std::vector<Role>& roles_;
  std::vector<std::size_t> order_;
  std::size_t usual_ = 0;  // products of a forward pass
};

}  // namespace

std::vector<TrainingPass> training_passes(const Calls& calls, const Updates& updates) {
  const std::vector<Role> roles = roles_of(calls.shapes);
  std::map<std::int64_t, std::vector<std::size_t>> of_process;
  for (std::size_t i = 0; i < calls.size(); ++i) of_process[calls.process_id[i]].push_back(i);
  std::vector<TrainingPass> out;
  for (auto& [process, order] : of_process) {
    std::ranges::stable_sort(order, {}, [&](std::size_t i) { return calls.begin_ns[i]; });
    const std::vector<TrainingPass> passes = Process(calls, roles, std::move(order)).find(updates);
    out.insert(out.end(), passes.begin(), passes.end());
  }
  return out;
}

}  // namespace llmprof::analyze
