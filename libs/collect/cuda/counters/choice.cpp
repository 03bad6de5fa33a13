#include "collect/cuda/counters/choice.h"

#include <stdio.h>
#include <string.h>

#include "collect/names.h"

namespace llmprof::collect::counters {

namespace {

std::uint64_t mix(std::uint64_t hash, std::uint64_t value) {
  hash = (hash ^ value) * 0x9e3779b97f4a7c15u;
  return hash ^ (hash >> 32);
}

// "cuLaunchKernel", or that with what the driver appends: "_ptsz".
bool is_call(const char* function, const char* name) {
  const std::size_t length = strlen(name);
  return strncmp(function, name, length) == 0 && (function[length] == '\0' || function[length] == '_');
}

}  // namespace

std::size_t KernelChoice::saw(std::uint64_t signature, std::uint64_t now_ns, bool* is_new) {
  now_ns_ = now_ns;
  ++launches_;
  std::size_t at = mix(0, signature) % kSlots;
  while (slots_[at] != 0 && signatures_[slots_[at] - 1].id != signature) at = (at + 1) % kSlots;
  *is_new = slots_[at] == 0;
  if (*is_new) {
    if (count_ == kMost) return kNone;
    slots_[at] = static_cast<std::uint16_t>(++count_);
    signatures_[count_ - 1] = {signature, 0, 0, 0};
  }
  Signature& seen = signatures_[slots_[at] - 1];
  seen.seen_ns = now_ns;
  seen.seen_launch = launches_;
  return slots_[at] - 1u;
}

std::uint32_t KernelChoice::fewest_tries() const {
  std::uint32_t fewest = ~0u;
  for (std::size_t i = 0; i < count_; ++i) {
    if (comes(signatures_[i]) && signatures_[i].tries < fewest) fewest = signatures_[i].tries;
  }
  return fewest;
}

bool KernelChoice::wants(std::size_t number, bool* gave_up) {
  *gave_up = false;
  if (current_ == number) return true;
  if (current_ != kNone) {
    if (comes(signatures_[current_])) return false;
    *gave_up = true;
    threw_away();
  }
  return signatures_[number].tries <= fewest_tries();
}

void KernelChoice::measured(std::size_t number, bool all) {
  current_ = all ? kNone : number;
  if (all) ++signatures_[number].tries;
}

void KernelChoice::threw_away() {
  if (current_ != kNone) ++signatures_[current_].tries;
  current_ = kNone;
}

LaunchShape shape_of(const char* function, const void* arguments) {
  LaunchShape shape{};
  if (function == nullptr || arguments == nullptr) return shape;
  const char* at = static_cast<const char*>(arguments);
  if (is_call(function, "cuLaunchKernelEx")) {  // the first argument points to the configuration, which begins with it
    memcpy(&at, at, sizeof(void*));
    if (at != nullptr) memcpy(&shape, at, sizeof(shape));
  } else if (is_call(function, "cuLaunchKernel") || is_call(function, "cuLaunchCooperativeKernel")) {
    memcpy(&shape, at + sizeof(void*), sizeof(shape));  // after the function
  }
  return shape;
}

std::uint64_t signature_of(const char* symbol, const LaunchShape& shape) {
  std::uint64_t hash = mix(0x6b65726e, reinterpret_cast<std::uintptr_t>(symbol));
  for (int i = 0; i < 3; ++i) hash = mix(hash, std::uint64_t{shape.grid[i]} << 32 | shape.block[i]);
  return hash;
}

bool merge_ranges(const double* values, std::size_t ranges, std::size_t metrics, double* merged) {
  for (std::size_t metric = 0; metric < metrics; ++metric) {
    merged[metric] = __builtin_nan("");
    for (std::size_t range = 0; range < ranges; ++range) {
      const double value = values[range * metrics + metric];
      if (value != value) continue;
      if (merged[metric] == merged[metric]) return false;
      merged[metric] = value;
    }
  }
  return ranges != 0;
}

void KernelVerdicts::was_launched(const List& patterns, const char* symbol) {
  List one{};
  one.count = 1;
  for (std::size_t i = 0; i < patterns.count; ++i) {
    one.words[0] = patterns.words[i];
    seen_[i] = seen_[i] || matches(one, symbol);
  }
}

// Spellings of one name stand one after the other.
KernelVerdicts::Unseen KernelVerdicts::unseen(const List& patterns) const {
  Unseen found{nullptr, 0};
  for (std::size_t i = 0; i < patterns.count;) {
    const char* const name = patterns.names[i] != nullptr ? patterns.names[i] : patterns.words[i];
    bool seen = false;
    do seen = seen || seen_[i];
    while (++i < patterns.count && patterns.names[i] == name);
    if (!seen && found.count++ == 0) found.first = name;
  }
  return found;
}

void KernelVerdicts::say_unseen(const List& patterns) const {
  const Unseen names = unseen(patterns);
  if (names.count == 0) return;
  char others[48] = "";
  if (names.count > 1) snprintf(others, sizeof(others), " (and %zu more)", names.count - 1);
  note("counters",
       "no kernel %.256s%s was launched by itself. Kernels of CUDA graphs are counted with "
       "--counters-method sampled.",
       names.first, others);
}

}  // namespace llmprof::collect::counters
