#include "analyze/passes/match_stages.h"

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <vector>

#include "analyze/passes/match.h"

namespace llmprof::analyze {

namespace {

struct Told {  // what a pass is
  std::string_view stage = "other";
  StepSize size;
};

// The passes of one thread, in order of time.
class Thread {
 public:
  explicit Thread(std::vector<const MatchedPass*> passes) : passes_(std::move(passes)) {}

  std::vector<Told> tell() {
    const bool trains = std::any_of(passes_.begin(), passes_.end(), [](const auto* pass) { return pass->backward; });
    std::vector<Told> told(passes_.size());
    for (std::size_t i = 0; i < passes_.size(); ++i) {
      if (trains) {
        told[i] = training(i);
      } else if (passes_[i]->of != MatchedPass::Of::kModel) {
        told[i] = {.stage = passes_[i]->of == MatchedPass::Of::kDraft ? "draft" : "encode",
                   .size = {.rows = passes_[i]->rows}};
        drafted_ = drafted_ || passes_[i]->of == MatchedPass::Of::kDraft;
      } else {
        if (drafted_) {
          checked(i, told[i]);
        } else if (!prefill(i, before_, told[i])) {
          decode(i, before_, told[i]);
        }
        before_ = &told[i];
        drafted_ = false;
      }
    }
    return told;
  }

 private:
  // Of the model itself.
  const MatchedPass* next(std::size_t i) const {
    while (++i < passes_.size()) {
      if (passes_[i]->of == MatchedPass::Of::kModel) return passes_[i];
    }
    return nullptr;
  }

  // A smaller model's tokens lie before it: all are checked in one pass. How many sequences they belong to and how many
  // of them are taken, no shape tells.
  void checked(std::size_t i, Told& told) const {
    const MatchedPass& pass = *passes_[i];
    told.stage = pass.logits_rows > 0 && pass.logits_rows < pass.rows ? "prefill" : "verify";
    told.size = {.rows = pass.rows};
  }

  Told training(std::size_t i) const {
    const MatchedPass& pass = *passes_[i];
    const bool before_backward = next(i) != nullptr && next(i)->backward;
    if (!pass.backward && !before_backward) return {};
    const MatchedPass& sized = pass.square == 0 && pass.backward && i > 0 ? *passes_[i - 1] : pass;
    return {.stage = pass.backward ? "backward" : "forward", .size = size_of(pass.rows, sized.square)};
  }

  static StepSize size_of(std::int64_t rows, std::int64_t tokens) {
    if (tokens <= 0 || rows % tokens != 0) return {};
    return {.batch = rows / tokens, .tokens = tokens, .context = tokens};
  }

  // More rows than logits, or more rows than the pass behind it: one row of each sequence goes on.
  bool prefill(std::size_t i, const Told* before, Told& told) const {
    const MatchedPass& pass = *passes_[i];
    std::int64_t batch = 0;
    if (pass.logits_rows > 0 && pass.logits_rows < pass.rows) {
      batch = pass.logits_rows;
    } else if (next(i) != nullptr && next(i)->rows < pass.rows && pass.rows % next(i)->rows == 0) {
      batch = next(i)->rows;
    } else if (pass.square > 1) {
      batch = pass.rows / pass.square;
    }
    if (batch == 0) return false;
    told.stage = "prefill";
    if (pass.rows % batch == 0) {
      told.size = size_of(pass.rows, pass.rows / batch);
    } else {
      uneven(pass.rows, batch, before, told);
    }
    return true;
  }

  static bool generates(const Told* told) {
    return told != nullptr && (told->stage == "decode" || told->stage == "mixed");
  }

  // At most this many tokens are remembered after the pass.
  static std::optional<std::int64_t> remembered(const StepSize& size) {
    if (size.context && size.batch) return *size.context * *size.batch;
    return size.contexts_most;
  }

  // Sequences of different lengths. While others generate, some of the rows may be theirs, and what they remember is
  // somewhere between nothing and all that was; else prompts begin anew.
  static void uneven(std::int64_t rows, std::int64_t batch, const Told* before, Told& told) {
    told.size = {.batch = batch, .tokens = {}, .context = {}, .rows = rows, .contexts = rows, .contexts_most = rows};
    if (!generates(before) || rows <= before->size.batch.value_or(0)) return;
    told.stage = "mixed";
    const std::optional<std::int64_t> most = remembered(before->size);
    told.size.contexts_most = most ? std::optional(*most + rows) : std::nullopt;
  }

  // As many rows as sequences; each pass adds a token to every sequence.
  void decode(std::size_t i, const Told* before, Told& told) const {
    const std::int64_t rows = passes_[i]->rows;
    const bool behind = before != nullptr && (before->stage == "prefill" || generates(before));
    const bool follows = behind && before->size.batch == rows;
    const bool undrafted = before != nullptr && before->stage == "verify";
    if (!follows && !undrafted && (next(i) == nullptr || next(i)->rows != rows))
      return;  // one pass alone: nothing tells
    told.stage = "decode";
    told.size = {.batch = rows, .tokens = 1, .context = {}};
    if (follows && before->size.context) told.size.context = *before->size.context + 1;
    if (!behind || told.size.context) return;
    // One token more for each; sequences that ended took with them what nobody knows.
    const std::optional<std::int64_t> most = remembered(before->size);
    if (!most || rows > before->size.batch.value_or(0)) return;
    told.size.contexts = follows && before->size.contexts ? *before->size.contexts + rows : rows;
    told.size.contexts_most = *most + rows;
  }

  std::vector<const MatchedPass*> passes_;
  const Told* before_ = nullptr;  // the last pass of the model
  bool drafted_ = false;          // since then
};

// What comes between a pass and the one that follows from it (sampling, the next embedding, the loss) belongs to it.
std::int64_t end_of(const MatchedPass& pass, const MatchedPass* next, std::string_view next_stage) {
  static constexpr std::array<std::string_view, 4> kFollows{"decode", "backward", "draft", "verify"};
  if (next == nullptr || std::ranges::find(kFollows, next_stage) == kFollows.end()) return pass.end_ns;
  const std::int64_t gap = next->begin_ns - pass.end_ns;
  return gap > 0 && gap <= pass.end_ns - pass.begin_ns ? next->begin_ns : pass.end_ns;
}

}  // namespace

double confidence_of(const MatchedPass& pass) {
  return (pass.backward || pass.logits_rows > 0 ? kMatchedConfidence : kWithoutLogits) * pass.share;
}

InferredSteps infer_steps(const Matches& matches, const ProcessOfThread& process_of_thread, trace::Strings& strings) {
  InferredSteps out;
  out.step_of_pass.assign(matches.passes.size(), kNone);
  for (std::size_t begin = 0; begin < matches.passes.size();) {
    std::vector<const MatchedPass*> passes;
    std::vector<std::size_t> indices;
    std::size_t end = begin;
    for (; end < matches.passes.size() && matches.passes[end].thread_id == matches.passes[begin].thread_id; ++end) {
      if (matches.passes[end].share < kLeastShareOfPass) continue;
      passes.push_back(&matches.passes[end]);
      indices.push_back(end);
    }
    const std::vector<Told> told = Thread(passes).tell();
    for (std::size_t i = 0; i < passes.size(); ++i) {
      const MatchedPass& pass = *passes[i];
      const bool last = i + 1 == passes.size();
      Step step{.begin_ns = pass.begin_ns,
                .end_ns = end_of(pass, last ? nullptr : passes[i + 1], last ? "" : told[i + 1].stage),
                .thread_id = pass.thread_id,
                .process_id = process_of(process_of_thread, pass.thread_id),
                .stage = strings.intern(told[i].stage),
                .size = told[i].size};
      step.confidence = confidence_of(pass);
      out.step_of_pass[indices[i]] = static_cast<std::int32_t>(out.steps.size());
      out.steps.push_back(step);
    }
    begin = end;
  }
  const std::vector<std::int32_t> place_of = number_by_time(out.steps);
  for (std::int32_t& step : out.step_of_pass) {
    if (step != kNone) step = place_of[step];
  }
  return out;
}

// The products of attention itself, which no matrix of the model tells.

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
      std::ranges::sort(windows, {}, &Window::begin_ns);
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
