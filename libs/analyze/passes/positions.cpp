#include "analyze/passes/positions.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <string_view>
#include <tuple>

#include "analyze/passes/match_stages.h"

namespace llmprof::analyze {
namespace {

using model::OpClass;

std::string_view last_component(std::string_view path) { return path.substr(path.rfind('.') + 1); }

// "layers.3.self_attn.q_proj", "layers.3.self_attn.k_proj" -> "layers.3.self_attn".
std::string common_block(const std::string& a, const std::string& b) {
  std::size_t end = 0;
  for (std::size_t i = 0; i <= std::min(a.size(), b.size()); ++i) {
    const bool a_ends = i == a.size() || a[i] == '.', b_ends = i == b.size() || b[i] == '.';
    if (a_ends && b_ends) end = i;
    if (i == a.size() || i == b.size() || a[i] != b[i]) break;
  }
  return a.substr(0, end);
}

// "q_proj" and "q_norm", "q_a_proj" and "q_a_layernorm".
bool belongs_to(std::string_view norm, std::string_view projection) {
  norm = last_component(norm);
  projection = last_component(projection);
  const std::size_t word = norm.rfind('_');
  return word != norm.npos && projection.starts_with(norm.substr(0, word + 1));
}

bool is_norm(const Between& item) { return item.op_class == OpClass::kNorm; }

}  // namespace

Positions::Positions(Products products, const Calls& calls, const Matches& matches, trace::Strings& strings)
    : products_(std::move(products)), strings_(&strings) {
  for (const MatchedPass& pass : matches.passes) {
    backward_.push_back(pass.backward);
    confidence_.push_back(static_cast<float>(confidence_of(pass) * kPositionConfidence));
  }
  for (const Core& core : products_.cores) cores_.insert(strings.intern(core.module).id);
  for (std::size_t i = 0; i < calls.size(); ++i) {
    const CallMatch& match = matches.calls[i];
    if (match.slot == kNone || matches.passes[match.pass].share < kLeastShareOfPass) continue;
    of_owner_[calls.thread_id[i]].push_back(
        {calls.begin_ns[i], calls.end_ns[i], match.slot, match.pass, match.recomputed});
  }
}

std::string Positions::block_of(std::size_t slot) const {
  const std::string& module = products_.slots[slot].module;
  if (products_.slots[slot].layer < 0) return "";
  return module.substr(0, module.size() - products_.slots[slot].op.size() - 1);
}

// Between q and k, or gate and up: what stands behind all of them in the model may come as soon as its own product is
// there. Attention and the rotation need more than one of them.
std::vector<Between> Positions::beside(std::size_t slot) const {
  std::size_t behind = slot + 1;
  while (behind < products_.slots.size() && products_.before[behind].empty()) ++behind;
  if (behind >= products_.slots.size() || products_.slots[behind].layer != products_.slots[slot].layer) return {};
  std::vector<Between> items;
  for (const Between& item : products_.before[behind]) {
    const bool needs_all = item.op_class == OpClass::kAttention || item.op_class == OpClass::kRope;
    const bool may = is_norm(item) ? belongs_to(item.module, products_.slots[slot].module) : !needs_all;
    if (may) items.push_back(item);
  }
  return items;
}

Positions::Gap Positions::between(std::int32_t from, std::int32_t to) const {
  const auto low = static_cast<std::size_t>(std::min(from, to)), high = static_cast<std::size_t>(std::max(from, to));
  Gap gap;
  for (std::size_t slot = low + 1; slot <= high; ++slot) {
    const auto& items = products_.before[slot];
    gap.items.insert(gap.items.end(), items.begin(), items.end());
  }
  if (gap.items.empty() && low < high) gap.items = beside(low);
  if (low == high) {
    // The gradients of an input and of its weights: what made the input may go on its way back between them.
    gap.items = products_.before[low];
    gap.by_name_only = true;
  }
  gap.backward = from >= to;
  if (gap.backward) std::reverse(gap.items.begin(), gap.items.end());
  std::string around = common_block(products_.slots[low].module, products_.slots[high].module);
  const std::string low_block = block_of(low), high_block = block_of(high);
  const std::string &left = from > to ? high_block : low_block, &next = from > to ? low_block : high_block;
  if (low_block != high_block) around = next.empty() ? left : next;
  if (!around.empty()) gap.around = strings_->intern(around);
  // A block ends with the sum of what came in and what its last product made of it; then the next norm begins.
  const bool sums =
      !low_block.empty() && std::ranges::any_of(gap.items, is_norm) && (low_block != high_block || around == low_block);
  if (sums) gap.sum = strings_->intern(low_block);
  return gap;
}

// The way back through what made the input of `from`, then the way forward to `to` once more.
Positions::Gap Positions::before_recomputation(std::int32_t from, std::int32_t to) const {
  Gap gap;
  gap.backward = true;
  const std::vector<Between>&back = products_.before[from], &again = products_.before[to];
  gap.items.assign(back.rbegin(), back.rend());
  gap.items.insert(gap.items.end(), again.begin(), again.end());
  const std::string around = block_of(static_cast<std::size_t>(to));
  if (!around.empty()) gap.around = strings_->intern(around);
  return gap;
}

// Behind the last product of a pass and before the first of the next.
Positions::Gap Positions::between_passes(End from, End to) const {
  Gap gap{.before_product = to != End::kNowhere, .in_pass = false};
  const auto add = [&](const std::vector<Between>& items, bool backward) {
    gap.items.insert(gap.items.end(), items.begin(), items.end());
    if (backward) std::reverse(gap.items.end() - std::ssize(items), gap.items.end());
  };
  const std::vector<Between>&first = products_.before.front(), &last = products_.before.back();
  if (from == End::kForward) add(last, false);
  if (from == End::kBackward) add(first, true);
  if (to == End::kForward) add(first, false);
  if (to == End::kBackward && from != End::kForward) add(last, true);
  gap.behind_logits = from == End::kForward;
  gap.before_gradients = to == End::kBackward;
  return gap;
}

// The products around it: of one pass, or the last of a pass and the first of the next.
const Positions::Gap& Positions::gap_after(const std::vector<Call>& calls, std::size_t next) const {
  const bool from_product = next > 0, to_product = next < calls.size();
  const bool same = from_product && to_product && calls[next - 1].pass == calls[next].pass;
  const auto end_of = [&](bool there, std::size_t call) {
    return !there ? End::kNowhere : backward_[calls[call].pass] ? End::kBackward : End::kForward;
  };
  const End from = end_of(from_product, next - 1), to = end_of(to_product, next);
  const bool begins_again = same && calls[next].recomputed && !calls[next - 1].recomputed;
  const auto key = same ? std::tuple(calls[next - 1].slot, calls[next].slot, begins_again)
                        : std::tuple(-1 - static_cast<std::int32_t>(from), -1 - static_cast<std::int32_t>(to), false);
  const auto [entry, fresh] = gaps_.try_emplace(key);
  Gap& gap = entry->second;
  if (!fresh) return gap;
  gap = begins_again ? before_recomputation(calls[next - 1].slot, calls[next].slot)
        : same       ? between(calls[next - 1].slot, calls[next].slot)
                     : between_passes(from, to);
  for (const Between& item : gap.items) gap.names.push_back(strings_->intern(item.module));
  return gap;
}

// Kernels between two products, in order of launch: those whose class names an operator there are anchors, the others
// follow from the anchors around them.
class Positions::Filler {
 public:
  Filler(const Gap& gap, std::vector<const Kernel*> kernels) : gap_(gap), kernels_(std::move(kernels)) {
    at_.assign(kernels_.size(), kOpen);
    find_norms();
    for (std::size_t i = 0; i < kernels_.size(); ++i) {
      if (at_[i] == kOpen) at_[i] = anchor(*kernels_[i]);
    }
    before_ = behind_ = at_;
    for (std::size_t i = 1; i < at_.size(); ++i) {
      if (before_[i] == kOpen) before_[i] = before_[i - 1];
    }
    for (std::size_t i = at_.size(); i-- > 1;) {
      if (behind_[i - 1] == kOpen) behind_[i - 1] = behind_[i];
    }
  }

  trace::Name module(std::size_t i) const {
    const std::int32_t found = at_[i] != kOpen ? at_[i] : from_neighbours(i);
    if (found == kSumOfBlock) return gap_.sum;
    return found == kOpen ? gap_.around : gap_.names[found];
  }

 private:
  static constexpr std::int32_t kOpen = -1, kSumOfBlock = -2;

  std::int32_t first_of(OpClass op_class) const {
    const auto found = std::ranges::find(gap_.items, op_class, &Between::op_class);
    return found == gap_.items.end() ? kOpen : static_cast<std::int32_t>(found - gap_.items.begin());
  }

  // As many norms as the model has here are these, one after the other; where it has one, all are parts of it.
  void find_norms() {
    std::vector<std::int32_t> norms;
    for (std::size_t i = 0; i < gap_.items.size(); ++i) {
      if (is_norm(gap_.items[i])) norms.push_back(static_cast<std::int32_t>(i));
    }
    std::vector<std::size_t> made;
    for (std::size_t i = 0; i < kernels_.size(); ++i) {
      if (kernels_[i]->is == KernelClass::kNorm || kernels_[i]->is == KernelClass::kMean) made.push_back(i);
    }
    if (norms.empty() || made.empty() || (norms.size() > 1 && norms.size() != made.size())) return;
    for (std::size_t i = 0; i < made.size(); ++i) at_[made[i]] = norms[norms.size() > 1 ? i : 0];
    for (std::size_t i = 0; i < kernels_.size(); ++i) {
      const auto behind = std::ranges::upper_bound(made, i);
      if (kernels_[i]->is == KernelClass::kBeforeMean && behind != made.end()) at_[i] = at_[*behind];
      if (kernels_[i]->is == KernelClass::kAfterMean && behind != made.begin()) at_[i] = at_[*std::prev(behind)];
    }
  }

  std::int32_t anchor(const Kernel& kernel) const {
    using enum KernelClass;
    static constexpr std::pair<KernelClass, OpClass> kAnchors[] = {
        {kAttention, OpClass::kAttention},    {kCacheWrite, OpClass::kAttention},
        {kSoftmax, OpClass::kAttention},      {kRope, OpClass::kRope},
        {kActivation, OpClass::kElementwise}, {kEmbedding, OpClass::kEmbedding},
        {kSampling, OpClass::kSampling},      {kLoss, OpClass::kLoss}};
    if (kernel.core) return first_of(OpClass::kAttention);
    if (kernel.is == kSum) return gap_.sum.id != 0 ? kSumOfBlock : kOpen;
    const auto* const found = std::ranges::find(kAnchors, kernel.is, [](const auto& anchor) { return anchor.first; });
    const std::int32_t item = found == std::end(kAnchors) ? kOpen : first_of(found->second);
    return item == kOpen && kernel.is == kSoftmax ? first_of(OpClass::kSampling) : item;
  }

  std::int32_t from_neighbours(std::size_t i) const {
    const std::int32_t before = before_[i], behind = behind_[i];
    const auto last = static_cast<std::int32_t>(gap_.items.size()) - 1;
    if (gap_.by_name_only || names_another(kernels_[i]->is)) return kOpen;
    if (kernels_[i]->is == KernelClass::kProduct && (before != behind || before == kOpen || !is_core(before)))
      return kOpen;  // of matrices: only attention is made of those
    if (gap_.backward && (before == kOpen || behind == kOpen)) return kOpen;
    if (before == kOpen && gap_.behind_logits && is_loss(behind)) return behind;
    if (behind == kOpen && gap_.before_gradients && is_loss(before)) return before;
    if (before == kOpen && behind == kOpen) return alone();
    if (before == behind) return is_one_kernel(before) ? kOpen : before;
    if (before == kSumOfBlock) return behind;  // the sum itself is one kernel
    if (behind == kSumOfBlock) return before == kOpen ? kSumOfBlock : before;
    if (before == kOpen) return gap_.in_pass && behind == 0 && gap_.sum.id == 0 ? behind : kOpen;
    if (behind == kOpen) return gap_.before_product && before == last ? before : kOpen;
    return kOpen;
  }

  // It says what it is, and that does not stand here: recomputed on the way back, or not of the model.
  static bool names_another(KernelClass is) {
    using enum KernelClass;
    static constexpr KernelClass kNaming[] = {kAttention, kCollective, kLoss,       kSampling,  kSoftmax,
                                              kNorm,      kRope,       kCacheWrite, kActivation};
    return std::ranges::count(kNaming, is) > 0;
  }

  bool is_loss(std::int32_t item) const { return item >= 0 && gap_.items[item].op_class == OpClass::kLoss; }

  bool is_core(std::int32_t item) const { return item >= 0 && gap_.items[item].op_class == OpClass::kAttention; }

  bool is_one_kernel(std::int32_t item) const {
    return item != kSumOfBlock && gap_.items[item].op_class == OpClass::kEmbedding;
  }

  std::int32_t alone() const {
    return gap_.in_pass && gap_.items.size() == 1 && gap_.sum.id == 0 && !is_norm(gap_.items[0]) ? 0 : kOpen;
  }

  const Gap& gap_;
  std::vector<const Kernel*> kernels_;
  std::vector<std::int32_t> at_;               // by kernel: an item of the gap, kSumOfBlock or kOpen
  std::vector<std::int32_t> before_, behind_;  // by kernel: the anchors around it, itself included
};

std::vector<Positions::Place> Positions::place(const std::vector<Kernel>& kernels) const {
  std::vector<Place> places(kernels.size());
  struct At {
    const std::vector<Call>* calls = nullptr;
    std::size_t next = 0;  // the product behind it
    std::uint32_t kernel = 0;
  };
  std::vector<At> found;
  for (std::size_t i = 0; i < kernels.size(); ++i) {
    const auto owner = of_owner_.find(kernels[i].owner);
    if (owner == of_owner_.end()) continue;
    const std::vector<Call>& calls = owner->second;
    const auto next = std::ranges::upper_bound(calls, kernels[i].at_ns, {}, &Call::begin_ns);
    if (next != calls.begin() && std::prev(next)->end_ns > kernels[i].at_ns) continue;  // inside a call
    found.push_back({&calls, static_cast<std::size_t>(next - calls.begin()), static_cast<std::uint32_t>(i)});
  }
  const auto key = [&](const At& at) {
    const Kernel& kernel = kernels[at.kernel];
    return std::tuple(kernel.owner, at.next, kernel.at_ns, at.kernel);
  };
  if (!std::ranges::is_sorted(found, {}, key)) std::ranges::sort(found, {}, key);  // launches mostly come in order
  for (std::size_t begin = 0, end = 0; begin < found.size(); begin = end) {
    std::vector<const Kernel*> together;
    for (end = begin;
         end < found.size() && found[end].calls == found[begin].calls && found[end].next == found[begin].next; ++end) {
      together.push_back(&kernels[found[end].kernel]);
    }
    const std::vector<Call>& calls = *found[begin].calls;
    const std::size_t next = found[begin].next;
    const Filler filler(gap_after(calls, next), std::move(together));
    const float before = next > 0 ? confidence_[calls[next - 1].pass] : 1;
    const float behind = next < calls.size() ? confidence_[calls[next].pass] : 1;
    for (std::size_t i = begin; i < end; ++i) {
      places[found[i].kernel] = {filler.module(i - begin), std::min(before, behind)};
    }
  }
  return places;
}

}  // namespace llmprof::analyze
