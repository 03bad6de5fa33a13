// The products of attention itself, which no matrix of the model tells.

#include <algorithm>
#include <map>
#include <vector>

#include "analyze/passes/match.h"

namespace llmprof::analyze {
namespace {

// Attention stands between two products. Forward it follows the slot that says so, backward it comes before it. Its
// products may be made by other threads than those of the weights.
class CoreMatcher {
 public:
  CoreMatcher(const Products& products, const Calls& calls, Matches& out)
      : products_(products), calls_(calls), out_(out), squares_(out.passes.size()) {
    find_windows();
  }

  void run() {
    for (std::size_t i = 0; i < calls_.size(); ++i) {
      if (out_.calls[i].pass == kNone && calls_.segment[i] != kNone) visit(i);
    }
    for (std::size_t i = 0; i < squares_.size(); ++i) set_square(out_.passes[i], squares_[i]);
  }

 private:
  struct Window {  // between two products, with attention in it
    std::int64_t begin_ns = 0, end_ns = 0, thread_id = 0;
    std::int32_t pass = kNone, core = kNone;
  };

  void find_windows() {
    std::vector<std::int32_t> core_before(products_.slots.size(), kNone);
    for (std::size_t i = 0; i + 1 < products_.slots.size(); ++i) core_before[i + 1] = products_.slots[i].core;
    std::size_t last = calls_.size();  // the matched call before, of the same thread and segment
    for (std::size_t i = 0; i < calls_.size(); ++i) {
      const CallMatch& match = out_.calls[i];
      if (match.slot == kNone) continue;
      if (last < i && out_.calls[last].pass == match.pass) {
        const auto slot = static_cast<std::size_t>(out_.calls[last].slot);
        const std::int32_t core = out_.passes[match.pass].backward ? core_before[slot] : products_.slots[slot].core;
        if (core != kNone && out_.calls[last].slot != match.slot) {
          windows_[calls_.process_id[i]].push_back(
              {calls_.end_ns[last], calls_.begin_ns[i], calls_.thread_id[i], match.pass, core});
        }
      }
      last = i;
    }
    for (auto& [process, windows] : windows_) {
      std::sort(windows.begin(), windows.end(), [](const auto& a, const auto& b) { return a.begin_ns < b.begin_ns; });
    }
  }

  // The window of its own thread, or of another one of the process that makes none itself.
  const Window* window_of(std::size_t call) const {
    const auto found = windows_.find(calls_.process_id[call]);
    if (found == windows_.end()) return nullptr;
    const std::vector<Window>& windows = found->second;
    auto place = std::upper_bound(windows.begin(), windows.end(), calls_.begin_ns[call],
                                  [](std::int64_t at, const Window& window) { return at < window.begin_ns; });
    constexpr int kMostThreads = 16;  // that make passes at the same time
    const Window* other = nullptr;
    for (int i = 0; i < kMostThreads && place != windows.begin(); ++i) {
      --place;
      if (place->end_ns < calls_.end_ns[call]) continue;
      if (place->thread_id == calls_.thread_id[call]) return &*place;
      other = &*place;
    }
    return other;
  }

  void visit(std::size_t call) {
    const Window* window = window_of(call);
    if (window == nullptr) return;
    const CallShape& s = calls_.shapes[calls_.shape[call]];
    const Core& core = products_.cores[window->core];
    const auto is_side = [&](std::int64_t dim) { return s.m == dim || s.n == dim || s.k == dim; };
    if (!std::any_of(core.dims.begin(), core.dims.end(), is_side)) return;
    out_.calls[call] = {.pass = window->pass, .core = window->core};
    if (s.k == core.qk_dim && s.m == s.n) squares_[window->pass][s.m] += s.batch;
  }

  // Full squares for every head of every sequence and layer: that is how long the sequences were. Where a head is as
  // wide as that, the product with the values is a square of the same size.
  void set_square(MatchedPass& pass, const std::map<std::int64_t, std::int64_t>& squares) const {
    const std::int64_t heads = products_.cores.empty() ? 0 : products_.cores.front().heads;
    if (squares.size() != 1 || heads == 0) return;
    const auto [tokens, count] = *squares.begin();
    if (tokens <= 0 || pass.rows % tokens != 0) return;
    const std::int64_t each = tokens == products_.cores.front().qk_dim ? 2 : 1;
    if (count == each * (pass.rows / tokens) * heads * products_.layers) pass.square = tokens;
  }

  const Products& products_;
  const Calls& calls_;
  Matches& out_;
  std::map<std::int64_t, std::vector<Window>> windows_;        // by process
  std::vector<std::map<std::int64_t, std::int64_t>> squares_;  // by pass: side -> calls
};

}  // namespace

void match_cores(const Products& products, const Calls& calls, Matches& matches) {
  CoreMatcher(products, calls, matches).run();
}

}  // namespace llmprof::analyze
