#include "analyze/passes/classify.h"

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <tuple>
#include <unordered_map>

#include "analyze/names/range_words.h"

namespace llmprof::analyze {
namespace {

// The stages a range contains, one bit each; used to tell a step from a container of steps.
using StageSet = std::uint32_t;
constexpr std::size_t kMostStages = 30;  // of any name; more are "other"
constexpr std::size_t kLongestPath = 240;

struct Own {  // what a range says by itself; small, as there is one for each
  double confidence = 0;
  StageSet bit = 0;  // of its stage
  trace::Name stage, why;
  RangeKind kind = RangeKind::kPlain;
  bool numbered = false;

  bool declared() const { return confidence == kDeclaredConfidence; }
  bool by_words() const { return confidence == kWordConfidence; }
  bool by_call() const { return confidence == kPassConfidence; }
};

// Of a thread that names no steps: outermost ranges whose names differ by a number at most.
struct Repeated {
  std::vector<std::int32_t> ranges;
  std::int64_t time_ns = 0;
  bool holds_others = false;
};

class Classifier {
 public:
  Classifier(const Ranges& ranges, const std::vector<RangePattern>& patterns, trace::Strings& strings)
      : ranges_(ranges), patterns_(patterns), strings_(strings), other_(strings.intern("other")) {}

  Classified run() {
    out_.places.resize(ranges_.size());
    own_.resize(ranges_.size());
    inside_.resize(ranges_.size());
    holds_others_.resize(ranges_.size());
    sweep(ranges_, [&](std::int32_t i, std::int32_t parent) {
      out_.places[i].parent = parent;
      if (parent != kNone) holds_others_[parent] = true;
      own_[i] = meaning(i);
      parts_have_names_ = parts_have_names_ || (own_[i].kind == RangeKind::kModule && own_[i].declared());
    });
    settle_updates();
    find_repeated();
    find_containers();
    for (std::size_t i = 0; i < ranges_.size(); ++i) place(static_cast<std::int32_t>(i));
    sort_steps();
    tell_meanings();
    return std::move(out_);
  }

 private:
  struct Inside {
    StageSet declared = 0, any = 0, numbered = 0;  // steps that the program's own ranges name
    StageSet firm = 0;                             // of these, by more than words
    StageSet calls = 0;                            // steps that are calls of a model
    std::int32_t forwards = 0;                     // steps of stage forward
  };

  StageSet bit_of(trace::Name stage) {
    const auto found = stage_bits_.find(stage.id);
    if (found != stage_bits_.end()) return found->second;
    const std::size_t place = std::min(stage_bits_.size(), kMostStages);
    return stage_bits_[stage.id] = StageSet{1} << place;
  }
  StageSet bit_of(std::string_view stage) { return bit_of(strings_.intern(stage)); }

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
    Own own{.confidence = meaning.confidence, .kind = meaning.kind};
    if (meaning.size.batch) sizes_[key] = meaning.size;
    own.numbered = read_name(ranges_.texts[key[0]]).number.has_value();
    if (!meaning.why.empty()) own.why = strings_.intern(meaning.why);
    if (meaning.kind == RangeKind::kStage || meaning.kind == RangeKind::kStep) {
      own.stage = meaning.stage.empty() ? trace::Name{} : strings_.intern(meaning.stage);
      own.bit = bit_of(own.stage);
    }
    return own;
  }

  bool passes(const Own& own) const { return own.kind == RangeKind::kStep || own.kind == RangeKind::kStage; }

  // "update" is an optimizer where there is a backward pass; elsewhere nobody knows.
  void settle_updates() {
    const trace::Name update = strings_.intern("update"), backward = strings_.intern("backward"),
                      optimizer = strings_.intern("optimizer");
    const auto is = [&](trace::Name stage) {
      return [&, stage](const auto& entry) { return passes(entry.second) && entry.second.stage == stage; };
    };
    if (std::none_of(meanings_.begin(), meanings_.end(), is(update))) return;
    const bool learns = std::any_of(meanings_.begin(), meanings_.end(), is(backward));
    for (Own& own : own_) {
      if (!own.by_words() || !passes(own) || own.stage != update) continue;
      if (learns) {
        own.stage = optimizer, own.bit = bit_of(optimizer);
      } else {
        own = {};
      }
    }
  }

  // Where the ranges of a thread name no steps: outermost ones that come again and again are steps by their own name.
  void find_repeated() {
    const trace::Name compile = strings_.intern("compile"), load = strings_.intern("load"),
                      warm_up = strings_.intern("warm-up");
    for (std::size_t begin = 0, end = 0; begin < ranges_.size(); begin = end) {
      bool named = false;
      std::int64_t all_ns = 0;  // outermost ranges that do not compile
      std::map<std::string, Repeated> groups;
      for (end = begin; end < ranges_.size() && ranges_.thread_id[end] == ranges_.thread_id[begin]; ++end) {
        const Own& own = own_[end];
        const bool compiles = passes(own) && own.stage == compile;
        named = named || (passes(own) && !compiles && own.stage != load && own.stage != warm_up);
        if (named || out_.places[end].parent != kNone) continue;
        const std::int64_t time_ns = ranges_.end_ns[end] - ranges_.begin_ns[end];
        if (!compiles) all_ns += time_ns;
        if (own.kind != RangeKind::kPlain) continue;
        Repeated& group = groups[shape(ranges_.name[end])];
        group.ranges.push_back(static_cast<std::int32_t>(end));
        group.time_ns += time_ns;
        group.holds_others = group.holds_others || holds_others_[end];
      }
      if (named) continue;
      for (const auto& [name, group] : groups) {
        if (is_step(group, all_ns)) name_steps(group);
      }
    }
  }

  const std::string& shape(std::int64_t name) {
    auto [entry, fresh] = shapes_.try_emplace(name);
    if (fresh) entry->second = shape_of(ranges_.texts[name]);
    return entry->second;
  }

  bool is_step(const Repeated& group, std::int64_t all_ns) {
    if (group.ranges.size() < 3) return false;
    const std::string& text = ranges_.texts[ranges_.name[group.ranges.front()]];
    if (group.time_ns * 20 < all_ns) return false;
    // One execution of a compiled program; what the compiler tries out has no number of a program.
    if (text.starts_with("XlaModule:#hlo_module=")) return text.find("program_id=") != std::string::npos;
    const RangeName name = read_name(text);
    if (!can_be_step(name)) return false;
    return name.number.has_value() || is_step_word(name) || (group.holds_others && group.time_ns * 2 > all_ns);
  }

  void name_steps(const Repeated& group) {
    const RangeName name = read_name(ranges_.texts[ranges_.name[group.ranges.front()]]);
    const bool generic = name.words.size() == 1 && is_step_word(name);
    const trace::Name stage =
        stage_bits_.size() < kMostStages ? strings_.intern(generic ? "steps" : name.label) : other_;
    const trace::Name why = strings_.intern("in no other range, and comes again and again: a step of its own name");
    for (const std::int32_t i : group.ranges) {
      own_[i].kind = RangeKind::kStep;
      own_[i].confidence = kRepeatedConfidence;
      own_[i].stage = stage;
      own_[i].bit = bit_of(stage);
      own_[i].why = why;
    }
  }

  // From the inside out: a step that holds steps of its own stage or of none, or declared ones while it is a mere
  // pattern, is a container; a container that holds none is a step. Words alone are weaker: "forward" inside "forward"
  // is a part of it, and only numbered steps make the range around them a container. Calls of a model are steps where
  // the program names none.
  void find_containers() {
    const auto unsaid = stage_bits_.find(0);
    const StageSet unsaid_bit = unsaid == stage_bits_.end() ? StageSet{0} : unsaid->second;
    const StageSet tokens = bit_of("prefill") | bit_of("decode") | bit_of("mixed");
    const StageSet around_forward = bit_of("generation") | bit_of("validation"), forward = bit_of("forward");
    for (std::size_t i = ranges_.size(); i-- > 0;) {
      Own& own = own_[i];
      const Inside& inside = inside_[i];
      if (own.kind == RangeKind::kStep && holds_steps(own, inside, unsaid_bit, tokens, around_forward)) {
        own.kind = RangeKind::kStage;
      }
      const bool acts_as_step = own.kind == RangeKind::kStep || (own.kind == RangeKind::kStage && !holds_passes(i));
      const std::int32_t parent = out_.places[i].parent;
      if (parent == kNone) continue;
      const StageSet self = acts_as_step ? own.bit : StageSet{0};
      Inside& outer = inside_[parent];
      outer.calls |= inside.calls | (own.by_call() ? self : StageSet{0});
      outer.any |= inside.any | (own.by_call() ? StageSet{0} : self);
      outer.firm |= inside.firm | (own.by_call() || own.by_words() ? StageSet{0} : self);
      outer.declared |= inside.declared | (own.declared() ? self : StageSet{0});
      outer.numbered |= inside.numbered | (own.numbered ? self : StageSet{0});
      outer.forwards += self == forward ? 1 : inside.forwards;
    }
  }

  static bool holds_steps(const Own& own, const Inside& inside, StageSet unsaid, StageSet tokens,
                          StageSet around_forward) {
    if (!own.declared() && inside.declared != 0) return true;
    if (own.by_call()) return inside.firm != 0;
    if (!own.by_words()) return ((own.declared() ? inside.declared : inside.any) & (own.bit | unsaid)) != 0;
    const bool around = (own.bit & around_forward) != 0;
    if (around && (((inside.any | inside.calls) & tokens) != 0 || inside.forwards > 1)) return true;
    return !own.numbered && (inside.numbered & own.bit) != 0;
  }

  // A stage whose size the program says is one step, whatever models it calls.
  bool holds_passes(std::size_t i) const {
    const bool sized = ranges_.payload[i] != kNull && own_[i].declared();
    return inside_[i].any != 0 || (inside_[i].calls != 0 && !sized);
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
      here.own_name = outer.own_name;
    }
    const bool opens = own.kind == RangeKind::kStep || own.kind == RangeKind::kStage;
    if (own.kind == RangeKind::kModule) {
      place_module(i);
    } else if (opens && here.step == kNone) {  // nothing opens a step inside a step
      here.kind = own.kind;
      here.module = {};
      here.own_name = false;
      if (!keeps_stage(own, here)) {
        if (own.stage.id != 0 || here.stage.id == 0) here.stage = own.stage.id != 0 ? own.stage : other_;
      }
      if (own.kind == RangeKind::kStep || !holds_passes(static_cast<std::size_t>(i))) open_step(i);
    } else if (opens && own.by_call()) {
      tell_size(i);
    } else if (here.step != kNone && !parts_have_names_ && !own.declared() && strings_.text(here.stage) != "compile") {
      place_module(i);  // a part by its own name
    }
  }

  // A forward pass that serves generation or validation is no training.
  bool keeps_stage(const Own& own, const RangePlace& here) const {
    if (own.by_call() && here.stage.id != 0) {  // the stage around it is the program's own word, unless it holds others
      const std::string_view holder = strings_.text(here.stage);
      return strings_.text(own.stage) == "steps" ||
             (holder != "training" && holder != "generation" && holder != "other");
    }
    if (own.declared() || here.stage.id == 0 || strings_.text(own.stage) != "forward") return false;
    const std::string_view around = strings_.text(here.stage);
    return around == "generation" || around == "validation";
  }

  void place_module(std::int32_t i) {
    RangePlace& here = out_.places[i];
    const std::uint64_t key = std::uint64_t{here.module.id} << 32 | static_cast<std::uint32_t>(ranges_.name[i]);
    auto [entry, fresh] = paths_.try_emplace(key);
    if (fresh) entry->second = strings_.intern(module_path(strings_.text(here.module), component(i)));
    if (strings_.text(entry->second).size() > kLongestPath) return;
    here.own_name = here.own_name || own_[i].kind != RangeKind::kModule || own_[i].by_words();
    // A module inside itself (same path) must not count its time twice: it stays plain.
    if (entry->second != here.module) here.kind = RangeKind::kModule;
    here.module = entry->second;
  }

  // What a range adds to the path of the module it lies in.
  std::string component(std::int32_t i) const {
    const std::string& name = ranges_.texts[ranges_.name[i]];
    if (own_[i].declared()) return name;
    if (std::string block = block_path(name); !block.empty()) return block;
    if (own_[i].kind == RangeKind::kModule) return name;
    std::string label = read_name(name).label;
    return label.empty() ? name : label;
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
    step.confidence = own_[i].confidence;
    const auto size = sizes_.find({ranges_.name[i], ranges_.domain[i], ranges_.category[i]});
    if (size != sizes_.end()) step.size = size->second;
    const std::int64_t payload = ranges_.payload[i];
    const bool ours = own_[i].declared() || own_[i].by_call();
    if (ours && ranges_.texts[ranges_.domain[i]] == "llmprof" && payload != kNull)
      step.size = unpack(payload);  // other programs' payloads mean other things
    out_.steps.push_back(step);
  }

  // The program's own step around the call of a model: the call knows its size, if both are of the same stage.
  void tell_size(std::int32_t i) {
    Step& around = out_.steps[out_.places[i].step];
    if (around.stage != own_[i].stage || around.size.batch || around.size.tokens || ranges_.payload[i] == kNull) return;
    around.size = unpack(ranges_.payload[i]);
  }

  void sort_steps() {
    const std::vector<std::int32_t> place_of = number_by_time(out_.steps);
    for (RangePlace& here : out_.places) {
      if (here.step != kNone) here.step = place_of[here.step];
    }
  }

  // One row for all ranges whose names differ by numbers at most and that were understood alike.
  void tell_meanings() {
    std::map<std::array<std::uint64_t, 4>, std::size_t> rows;
    const std::array<trace::Name, 4> kinds{trace::Name{}, strings_.intern("stage"), strings_.intern("step"),
                                           strings_.intern("module")};
    const trace::Name part = strings_.intern("inside a step: a part of it, by its own name");
    std::unordered_map<std::int64_t, trace::Name> shapes, domains;
    const auto intern = [&](auto& known, std::int64_t code, const auto& text) {
      auto [entry, fresh] = known.try_emplace(code);
      if (fresh) entry->second = strings_.intern(text());
      return entry->second;
    };
    for (std::size_t i = 0; i < ranges_.size(); ++i) {
      const RangePlace& here = out_.places[i];
      const trace::Name name =
          intern(shapes, ranges_.name[i], [&] { return shape_of(ranges_.texts[ranges_.name[i]]); });
      const trace::Name domain =
          ranges_.domain[i] == 0 ? trace::Name{}
                                 : intern(domains, ranges_.domain[i], [&] { return ranges_.texts[ranges_.domain[i]]; });
      const trace::Name kind = kinds[static_cast<std::size_t>(here.kind)];
      const bool as_said = here.kind == own_[i].kind || (here.kind != RangeKind::kModule && own_[i].why.id != 0);
      const trace::Name why = here.kind == RangeKind::kPlain ? trace::Name{} : as_said ? own_[i].why : part;
      const auto both = [](trace::Name a, trace::Name b) { return std::uint64_t{a.id} << 32 | b.id; };
      const auto [row, first] =
          rows.try_emplace({both(name, domain), both(kind, here.stage), why.id, 0}, out_.meanings.size());
      if (first)
        out_.meanings.push_back({.name = name, .domain = domain, .kind = kind, .stage = here.stage, .why = why});
      trace::RangeMeaningRow& meaning = out_.meanings[row->second];
      ++meaning.ranges;
      meaning.total_ns += ranges_.end_ns[i] - ranges_.begin_ns[i];
    }
  }

  const Ranges& ranges_;
  const std::vector<RangePattern>& patterns_;
  trace::Strings& strings_;
  trace::Name other_;
  Classified out_;
  std::vector<Own> own_;
  std::vector<Inside> inside_;
  std::vector<bool> holds_others_;
  std::map<std::array<std::int64_t, 3>, Own> meanings_;
  std::map<std::array<std::int64_t, 3>, StepSize> sizes_;  // of steps whose names say it
  std::array<std::int64_t, 3> last_key_{-1, -1, -1};
  Own last_own_;
  std::map<std::uint32_t, StageSet> stage_bits_;
  std::unordered_map<std::int64_t, std::string> shapes_;  // by code of the name
  bool parts_have_names_ = false;                         // the program says which ranges are modules
  std::unordered_map<std::uint64_t, trace::Name> paths_;
};

}  // namespace

Classified classify(const Ranges& ranges, const std::vector<RangePattern>& patterns, trace::Strings& strings) {
  return Classifier(ranges, patterns, strings).run();
}

std::vector<std::int32_t> number_by_time(std::vector<Step>& steps) {
  std::vector<std::uint32_t> order(steps.size());
  std::iota(order.begin(), order.end(), 0u);
  std::ranges::stable_sort(order, {}, [&](std::uint32_t i) { return steps[i].begin_ns; });
  permute(steps, order);
  std::vector<std::int32_t> place_of(steps.size());
  std::map<std::pair<std::int64_t, std::uint32_t>, std::int64_t> count;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    place_of[order[i]] = static_cast<std::int32_t>(i);
    steps[i].number = count[{steps[i].process_id, steps[i].stage.id}]++;
  }
  return place_of;
}

void set_calls_aside(Classified& classified) {
  std::vector<std::int32_t> place_of(classified.steps.size(), kNone);
  std::vector<Step> kept;
  for (std::size_t i = 0; i < classified.steps.size(); ++i) {
    if (classified.steps[i].confidence == kPassConfidence) continue;
    place_of[i] = static_cast<std::int32_t>(kept.size());
    kept.push_back(classified.steps[i]);
  }
  for (RangePlace& place : classified.places) {
    if (place.step == kNone) continue;
    place.step = place_of[place.step];
    if (place.step != kNone) continue;
    place.stage = {};
    if (place.kind == RangeKind::kStep) place.kind = RangeKind::kPlain;
  }
  classified.steps = std::move(kept);
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
