#include "collect/cuda/counters/stall_reasons.h"

#include <string.h>

namespace llmprof::collect::counters {
namespace {

constexpr char kPrefix[] = "smsp__pcsamp_warps_issue_stalled_";
constexpr char kTwin[] = "_not_issued";

}  // namespace

ReasonName read_reason(const char* name) {
  constexpr std::size_t kPrefixLength = sizeof(kPrefix) - 1, kTwinLength = sizeof(kTwin) - 1;
  if (strncmp(name, kPrefix, kPrefixLength) == 0 && name[kPrefixLength] != '\0') name += kPrefixLength;
  const std::size_t length = strlen(name);
  const bool twin = length > kTwinLength && strcmp(name + length - kTwinLength, kTwin) == 0;
  return {name, twin ? length - kTwinLength : length, twin};
}

bool StallReasons::add(std::uint32_t index, const char* name) {
  if (numbers_count_ == kMost) return false;
  const ReasonName read = read_reason(name);
  const std::size_t length = read.length < kNameBytes ? read.length : kNameBytes - 1;
  std::size_t reason = 0;
  while (reason < count_ && (strncmp(names_[reason], read.text, length) != 0 || names_[reason][length] != '\0'))
    ++reason;
  if (reason == count_) {  // at most one a number: there is room
    memcpy(names_[reason], read.text, length);
    ++count_;
  }
  numbers_[numbers_count_++] = {index, static_cast<std::uint16_t>(reason), read.not_issued};
  return true;
}

const StallReasons::Number* StallReasons::find(std::uint32_t index) const {
  // CUPTI numbers them one after the other, so the first look is nearly always right.
  if (index < numbers_count_ && numbers_[index].index == index) return &numbers_[index];
  for (std::size_t i = 0; i < numbers_count_; ++i) {
    if (numbers_[i].index == index) return &numbers_[i];
  }
  return nullptr;
}

bool StallReasons::sort(const pc::Reason* reasons, std::size_t count, Samples* samples) const {
  memset(samples, 0, sizeof(*samples));
  for (std::size_t i = 0; i < count; ++i) {
    const Number* number = find(reasons[i].index);
    if (number == nullptr) {
      samples->unknown += reasons[i].samples;
    } else {
      (number->not_issued ? samples->not_issued : samples->issued)[number->reason] += reasons[i].samples;
    }
  }
  bool contained = true;
  for (std::size_t i = 0; i < count_; ++i) {
    const std::uint64_t all = samples->issued[i], part = samples->not_issued[i];
    contained = contained && part <= all;
    samples->issued[i] = part <= all ? all - part : 0;
  }
  return contained;
}

}  // namespace llmprof::collect::counters
