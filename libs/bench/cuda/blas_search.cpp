// The fastest algorithm of a product. All are timed in turns, so that a clock that sinks while the GPU warms up hits
// each of them alike; the cache is cold each time, and the data random. What is left after two rounds of weeding out
// runs against the plain call and the heuristic's first, which win unless they are clearly slower.

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <optional>

#include "bench/cuda/blas_library.h"
#include "bench/cuda/sampler.h"

namespace llmprof::bench::cuda {
namespace {

constexpr double kClearly = 1.005;  // the plain choice is kept if the best is not faster than this
constexpr double kHopeless = 1.25;  // times the best after one sample each
constexpr std::size_t kSecondRound = 8, kFinalists = 3;
constexpr int kFinalSamples = 9, kLeastFinalSamples = 3;

double now_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

struct Entry {
  Algorithm algorithm;
  std::vector<double> seconds;

  bool given() const { return algorithm.plain || algorithm.rank == 0; }  // what one gets without a search
  double median() const {
    std::vector<double> sorted = seconds;
    const auto middle = sorted.begin() + static_cast<std::ptrdiff_t>(sorted.size() / 2);
    std::nth_element(sorted.begin(), middle, sorted.end());
    return *middle;
  }
};

class Race {
 public:
  Race(Context& context, const MatmulPlan& plan, const Search& search)
      : context_(context), plan_(plan), end_(now_seconds() + search.limit_seconds), limit_(search.limit_seconds) {}

  // False: there is no memory for it.
  Result<bool> allocate() {
    const Matmul& m = plan_.matmul();
    const auto values = [&](std::int64_t stride, std::int64_t rows, std::int64_t columns) {
      return stride * (m.batch - 1) + rows * columns;
    };
    const Fill fill{.scale = m.type == Type::kInt8 ? 32.0 : 1.0};
    const TensorSpec a{.name = "a", .type = m.type, .elements = values(m.a_stride, m.m, m.k), .fill = fill};
    const TensorSpec b{.name = "b", .type = m.type, .elements = values(m.b_stride, m.n, m.k), .fill = fill};
    const TensorSpec c{.name = "c", .type = product_type(m.type), .elements = values(m.c_stride, m.m, m.n)};
    LLMPROF_LET(const std::int64_t free, context_.free_bytes());
    constexpr std::int64_t kSpare = std::int64_t{1} << 30;  // for the flush, and what others may want
    if (a.bytes() + b.bytes() + c.bytes() > free - kSpare) return false;
    LLMPROF_LET(a_, context_.allocate(a.bytes()));
    LLMPROF_LET(b_, context_.allocate(b.bytes()));
    LLMPROF_LET(c_, context_.allocate(c.bytes()));
    LLMPROF_LET(flush_, CacheFlush::create(context_));
    LLMPROF_TRY(fill_random(context_, a_.pointer(), a, 1));
    LLMPROF_TRY(fill_random(context_, b_.pointer(), b, 2));
    return true;
  }

  Result<Found> run(std::vector<Algorithm> algorithms) {
    LLMPROF_TRY(first_round(algorithms));
    const std::size_t timed = entries_.size();
    keep(kSecondRound, kHopeless);
    LLMPROF_TRY(rounds(4, 1));
    keep(kFinalists, kHopeless);
    for (Entry& entry : entries_) entry.seconds.clear();
    LLMPROF_TRY(rounds(kFinalSamples, kLeastFinalSamples));
    return Found{entries_[winner()].algorithm, fmt::format("fastest of {} timed", timed)};
  }

 private:
  // The flush before it also keeps the GPU busy while the call is enqueued: its launch is not part of the time.
  Result<double> sample(const Algorithm& algorithm) {
    LLMPROF_TRY(flush_->enqueue());
    return context_.time(
        [&] { return plan_.enqueue(algorithm, a_.pointer(), b_.pointer(), c_.pointer(), context_.stream()); });
  }

  // Those that fail are left out: a heuristic's promise is not always kept.
  Result<void> first_round(const std::vector<Algorithm>& algorithms) {
    constexpr std::size_t kLeast = 4;
    std::optional<Error> failure;
    for (const Algorithm& algorithm : algorithms) {
      if (entries_.size() >= kLeast && now_seconds() > end_ - limit_ / 2) break;
      const Result<double> warm_up = sample(algorithm);  // loads the kernel
      const Result<double> seconds = warm_up ? sample(algorithm) : warm_up;
      if (context_.broken()) return seconds.error();
      if (seconds) entries_.push_back({algorithm, {*seconds}});
      if (!seconds) failure = seconds.error();
    }
    if (entries_.empty()) return *failure;
    return {};
  }

  // Takes `samples` more of each entry in turns; stops at the end of the time once each has `least`.
  Result<void> rounds(int samples, int least) {
    for (int round = 0; round < samples; ++round) {
      if (round >= least && now_seconds() > end_) break;
      for (Entry& entry : entries_) {
        LLMPROF_LET(const double seconds, sample(entry.algorithm));
        entry.seconds.push_back(seconds);
      }
    }
    return {};
  }

  void keep(std::size_t count, double within) {
    std::stable_sort(entries_.begin(), entries_.end(),
                     [](const Entry& x, const Entry& y) { return x.median() < y.median(); });
    const double best = entries_.front().median();
    std::size_t position = 0;
    std::erase_if(entries_, [&](const Entry& entry) {
      const bool good = position++ < count && entry.median() <= best * within;
      return !good && !entry.given();
    });
  }

  std::size_t winner() const {
    const auto less = [](const Entry& x, const Entry& y) { return x.median() < y.median(); };
    const auto best = std::min_element(entries_.begin(), entries_.end(), less);
    auto given = entries_.end();
    for (auto entry = entries_.begin(); entry != entries_.end(); ++entry) {
      if (entry->given() && (given == entries_.end() || less(*entry, *given))) given = entry;
    }
    const bool keeps_given = given != entries_.end() && given->median() <= best->median() * kClearly;
    return static_cast<std::size_t>((keeps_given ? given : best) - entries_.begin());
  }

  Context& context_;
  const MatmulPlan& plan_;
  double end_, limit_;
  Buffer a_, b_, c_;
  std::optional<CacheFlush> flush_;
  std::vector<Entry> entries_;
};

}  // namespace

Result<Found> fastest(BlasState& blas, const MatmulPlan& plan, const Search& search) {
  LLMPROF_LET(std::vector<Algorithm> algorithms, plan.algorithms(search.candidates));
  if (algorithms.size() == 1) return Found{algorithms.front(), "the only one"};
  Race race(blas.context, plan, search);
  LLMPROF_LET(const bool fits, race.allocate());
  if (!fits)
    return Found{algorithms.front(), fmt::format("first of {}, none timed for want of memory", algorithms.size())};
  return race.run(std::move(algorithms));
}

}  // namespace llmprof::bench::cuda
