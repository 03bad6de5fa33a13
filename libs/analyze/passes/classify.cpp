#include "analyze/passes/classify.h"

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <tuple>
#include <unordered_map>

namespace llmprof::analyze {
namespace {

// The stages a range contains, one bit each; used to tell a step from a container of steps.
using StageSet = std::uint16_t;

struct Own {  // what a range says by itself
  RangeKind kind = RangeKind::kPlain;
  bool declared = false;
  StageSet bit = 0;  // of its stage
  trace::Name stage;
  StepSize size;
};

class Classifier {
 public:
  Classifier(const Ranges& ranges, const std::vector<RangePattern>& patterns, trace::Strings& strings)
      : ranges_(ranges), patterns_(patterns), strings_(strings), other_(strings.intern("other")) {}

  Classified run() {
    out_.places.resize(ranges_.size());
    own_.resize(ranges_.size());
    inside_.resize(ranges_.size());
    sweep(ranges_, [&](std::int32_t i, std::int32_t parent) {
      out_.places[i].parent = parent;
      own_[i] = meaning(i);
    });
    find_containers();
    for (std::size_t i = 0; i < ranges_.size(); ++i) place(static_cast<std::int32_t>(i));
    sort_steps();
    return std::move(out_);
  }

 private:
  struct Inside {
    StageSet declared = 0, any = 0;
  };

  // Same name, domain and category: same meaning. Programs have few distinct ones and millions of ranges.
  Own meaning(std::int32_t i) {
    const std::array<std::int64_t, 3> key{ranges_.name[i], ranges_.domain[i], ranges_.category[i]};
    if (key == last_key_) return last_own_;
    auto [entry, fresh] = meanings_.try_emplace(key);
    if (fresh) entry->second = look_up(key);
    last_key_ = key;
    return last_own_ = entry->second;
  }

  Own look_up(const std::array<std::int64_t, 3>& key) {
    const Meaning meaning = meaning_of(ranges_.texts[key[0]], ranges_.texts[key[1]], ranges_.texts[key[2]], patterns_);
    Own own{.kind = meaning.kind, .declared = meaning.confidence == kDeclaredConfidence};
    own.size = meaning.size;
    if (meaning.kind == RangeKind::kStage || meaning.kind == RangeKind::kStep) {
      own.stage = meaning.stage.empty() ? trace::Name{} : strings_.intern(meaning.stage);
      const auto [bit, fresh] = stage_bits_.try_emplace(own.stage.id, static_cast<StageSet>(1U << stage_bits_.size()));
      own.bit = bit->second;
    }
    return own;
  }

  // From the inside out: a step that holds steps of its own stage or of none, or declared ones while it is a mere
  // pattern, is a container; a container that holds none is a step.
  void find_containers() {
    const auto unsaid = stage_bits_.find(0);
    const StageSet unsaid_bit = unsaid == stage_bits_.end() ? StageSet{0} : unsaid->second;
    for (std::size_t i = ranges_.size(); i-- > 0;) {
      Own& own = own_[i];
      const Inside& inside = inside_[i];
      if (own.kind == RangeKind::kStep &&
          ((!own.declared && inside.declared != 0) ||
           ((own.declared ? inside.declared : inside.any) & (own.bit | unsaid_bit)) != 0)) {
        own.kind = RangeKind::kStage;
      }
      const bool acts_as_step = own.kind == RangeKind::kStep || (own.kind == RangeKind::kStage && inside.any == 0);
      const std::int32_t parent = out_.places[i].parent;
      if (parent == kNone) continue;
      const StageSet self = acts_as_step ? own.bit : StageSet{0};
      inside_[parent].any |= inside.any | self;
      inside_[parent].declared |= inside.declared | (own.declared ? self : StageSet{0});
    }
  }

  // From the outside in: inherit from the parent, then apply what the range says itself.
  void place(std::int32_t i) {
    RangePlace& here = out_.places[i];
    const Own& own = own_[i];
    if (here.parent != kNone) {
      const RangePlace& outer = out_.places[here.parent];
      here.step = outer.step;
      here.stage = outer.stage;
      here.module = outer.module;
    }
    if (own.kind == RangeKind::kModule) {
      place_module(i);
    } else if (own.kind != RangeKind::kPlain && here.step == kNone) {  // nothing opens a step inside a step
      here.kind = own.kind;
      here.module = {};
      if (own.stage.id != 0 || here.stage.id == 0) here.stage = own.stage.id != 0 ? own.stage : other_;
      if (own.kind == RangeKind::kStep || inside_[i].any == 0) open_step(i);
    }
  }

  void place_module(std::int32_t i) {
    RangePlace& here = out_.places[i];
    const std::uint64_t key = std::uint64_t{here.module.id} << 32 | static_cast<std::uint32_t>(ranges_.name[i]);
    auto [entry, fresh] = paths_.try_emplace(key);
    if (fresh) entry->second = strings_.intern(module_path(strings_.text(here.module), ranges_.texts[ranges_.name[i]]));
    // A module inside itself (same path) must not count its time twice: it stays plain.
    if (entry->second != here.module) here.kind = RangeKind::kModule;
    here.module = entry->second;
  }

  void open_step(std::int32_t i) {
    RangePlace& here = out_.places[i];
    here.step = static_cast<std::int32_t>(out_.steps.size());
    Step step{.range = i,
              .begin_ns = ranges_.begin_ns[i],
              .end_ns = ranges_.end_ns[i],
              .thread_id = ranges_.thread_id[i],
              .process_id = ranges_.process_id[i],
              .stage = here.stage};
    step.confidence = own_[i].declared ? kDeclaredConfidence : kPatternConfidence;
    step.size = own_[i].size;
    const std::int64_t payload = ranges_.payload[i];
    if (own_[i].declared && payload != kNull)
      step.size = unpack(payload);  // other programs' payloads mean other things
    out_.steps.push_back(step);
  }

  void sort_steps() {
    std::vector<Step>& steps = out_.steps;
    std::vector<std::int32_t> order(steps.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return steps[a].begin_ns < steps[b].begin_ns; });
    std::vector<Step> sorted;
    std::vector<std::int32_t> place_of(steps.size());
    std::map<std::pair<std::int64_t, std::uint32_t>, std::int64_t> count;
    for (const std::int32_t old : order) {
      place_of[old] = static_cast<std::int32_t>(sorted.size());
      sorted.push_back(steps[old]);
      sorted.back().number = count[{steps[old].process_id, steps[old].stage.id}]++;
    }
    steps = std::move(sorted);
    for (RangePlace& here : out_.places) {
      if (here.step != kNone) here.step = place_of[here.step];
    }
  }

  const Ranges& ranges_;
  const std::vector<RangePattern>& patterns_;
  trace::Strings& strings_;
  trace::Name other_;
  Classified out_;
  std::vector<Own> own_;
  std::vector<Inside> inside_;
  std::map<std::array<std::int64_t, 3>, Own> meanings_;
  std::array<std::int64_t, 3> last_key_{-1, -1, -1};
  Own last_own_;
  std::map<std::uint32_t, StageSet> stage_bits_;
  std::unordered_map<std::uint64_t, trace::Name> paths_;
};

}  // namespace

Classified classify(const Ranges& ranges, const std::vector<RangePattern>& patterns, trace::Strings& strings) {
  return Classifier(ranges, patterns, strings).run();
}

std::vector<std::int32_t> add_steps(std::vector<Step> steps, Classified& classified) {
  std::vector<Step> all;
  std::vector<std::int32_t> place_of(steps.size()), old_place_of(classified.steps.size());
  std::size_t old = 0, fresh = 0;
  while (old < classified.steps.size() || fresh < steps.size()) {
    const bool take_old = fresh == steps.size() ||
                          (old < classified.steps.size() && classified.steps[old].begin_ns <= steps[fresh].begin_ns);
    (take_old ? old_place_of[old] : place_of[fresh]) = static_cast<std::int32_t>(all.size());
    all.push_back(take_old ? classified.steps[old++] : steps[fresh++]);
  }
  classified.steps = std::move(all);
  for (RangePlace& place : classified.places) {
    if (place.step != kNone) place.step = old_place_of[place.step];
  }
  return place_of;
}

}  // namespace llmprof::analyze
