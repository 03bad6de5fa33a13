#include "analyze/rules/facts/subjects.h"

#include <algorithm>
#include <functional>
#include <utility>

namespace llmprof::analyze {
namespace {

std::string label(const StepKernels& all, const StepKernel& kernel) {
  if (is_attention(all.text(kernel.name))) return "attention";
  if (kernel.op != 0) return all.text(kernel.op);
  if (is_collective(all.text(kernel.name))) return "communication";
  return kernel.product || is_product(all.text(kernel.name)) ? "a matrix product" : "another kernel";
}

bool same_queue(const StepKernel& a, const StepKernel& b) {
  return a.step_id == b.step_id && a.device_id == b.device_id && a.stream == b.stream;
}

class Finder {
 public:
  explicit Finder(const StepKernels& all) : all_(all), moves_(all.names.size()) {
    for (std::size_t name = 0; name < moves_.size(); ++name) moves_[name] = moves_elements(all.names[name]);
  }

  std::vector<StageChains> find() {
    for (std::size_t i = 0; i < all_.kernels.size(); ++i) {
      const StepKernel& kernel = all_.kernels[i];
      StageChains& stage = stages_[all_.text(kernel.stage)];
      ++stage.kernels;
      stage.estimated = stage.estimated || kernel.estimated;
      const bool moves = !kernel.product && moves_[static_cast<std::size_t>(kernel.name)];
      if (moves) ++stage.element_kernels;
      if (moves && follows(i)) {
        last_ = i;
      } else {
        close();
        first_ = last_ = moves ? i : kNone;
      }
    }
    close();
    return finished();
  }

 private:
  static constexpr std::size_t kNone = SIZE_MAX;
  using Key = std::pair<std::string, std::string>;

  bool follows(std::size_t i) const {
    return last_ != kNone && same_queue(all_.kernels[last_], all_.kernels[i]) &&
           all_.kernels[i].begin_ns - all_.kernels[last_].end_ns <= kChainGapNs;
  }

  void close() {
    if (first_ != kNone && last_ > first_) add();
    first_ = last_ = kNone;
  }

  void add() {
    const StepKernel &first = all_.kernels[first_], &last = all_.kernels[last_];
    Key key;
    if (first_ > 0 && same_queue(all_.kernels[first_ - 1], first)) key.first = label(all_, all_.kernels[first_ - 1]);
    if (last_ + 1 < all_.kernels.size() && same_queue(all_.kernels[last_ + 1], last))
      key.second = label(all_, all_.kernels[last_ + 1]);
    ChainGroup& group = groups_[all_.text(first.stage)][key];
    ++group.chains;
    std::int64_t longest = 0, covered_until = first.begin_ns;
    for (std::size_t i = first_; i <= last_; ++i) {
      const StepKernel& kernel = all_.kernels[i];
      ++group.kernels;
      group.time_ns += static_cast<double>(kernel.time_ns());
      longest = std::max(longest, kernel.time_ns());
      group.idle_ns += static_cast<double>(std::max<std::int64_t>(0, kernel.begin_ns - covered_until));
      covered_until = std::max(covered_until, kernel.end_ns);
    }
    group.longest_ns += static_cast<double>(longest);
  }

  std::vector<StageChains> finished() {
    std::vector<StageChains> out;
    for (auto& [name, stage] : stages_) {
      const double scale = all_.scale.at(name);
      stage.stage = name;
      stage.steps_read = all_.of.at(name);
      stage.steps = scale * static_cast<double>(stage.steps_read);
      stage.kernels *= scale, stage.element_kernels *= scale;
      for (auto& [key, group] : groups_[name]) {
        group.after = key.first, group.before = key.second;
        for (double* value : {&group.chains, &group.kernels, &group.time_ns, &group.longest_ns, &group.idle_ns})
          *value *= scale;
        stage.groups.push_back(group);
      }
      std::ranges::stable_sort(stage.groups, std::greater{}, &ChainGroup::gain_ns);
      out.push_back(std::move(stage));
    }
    return out;
  }

  const StepKernels& all_;
  std::vector<bool> moves_;  // by name
  std::size_t first_ = kNone, last_ = kNone;
  std::map<std::string, StageChains> stages_;
  std::map<std::string, std::map<Key, ChainGroup>> groups_;
};

}  // namespace

ChainGroup StageChains::total() const {
  ChainGroup sum;
  for (const ChainGroup& group : groups) {
    sum.chains += group.chains, sum.kernels += group.kernels, sum.time_ns += group.time_ns;
    sum.longest_ns += group.longest_ns, sum.idle_ns += group.idle_ns;
  }
  return sum;
}

std::vector<StageChains> chains_of(const StepKernels& kernels) { return Finder(kernels).find(); }

}  // namespace llmprof::analyze
