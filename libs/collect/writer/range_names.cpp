#include "collect/writer/range_names.h"

#include <string.h>

#include "collect/writer/glob.h"

namespace llmprof::collect {
namespace {

constexpr const char kStepCategory[] = "@step";  // a line of the patterns: ranges of category step in domain llmprof

bool has_line(const char* lines, const char* wanted) {
  const std::size_t length = strlen(wanted);
  for (const char* at = lines; at != nullptr; at = strchr(at, '\n')) {
    if (*at == '\n') ++at;
    if (strncmp(at, wanted, length) == 0 && (at[length] == '\n' || at[length] == '\0')) return true;
  }
  return false;
}

// Lines that begin with '!' hold everywhere but in domain llmprof, which says itself what its ranges are.
bool matches_any(const char* lines, const char* text, bool plain) {
  while (*lines != '\0') {
    const std::size_t length = strcspn(lines, "\n");
    const std::size_t mark = *lines == '!' ? 1 : 0;
    if (length > mark && (mark == 1) == plain && matches(lines + mark, length - mark, text)) return true;
    lines += length + (lines[length] == '\n' ? 1 : 0);
  }
  return false;
}

}  // namespace

void RangeNames::refresh() {
  const std::uint32_t definitions = g.definitions.load(std::memory_order_acquire);
  if (definitions == definitions_seen_) return;
  definitions_seen_ = definitions;
  const auto text = [&](wire::StringId id) { return shared_->strings.text(id); };
  for (std::uint32_t i = 1; i < kMaxDomains && domain_ == 0; ++i) {
    const wire::StringId name = shared_->domains[i].name.load(std::memory_order_acquire);
    if (name != 0 && strcmp(text(name), "llmprof") == 0) domain_ = i;
  }
  const bool counts_steps = has_line(g.settings.step_patterns, kStepCategory);
  for (const Category& category : shared_->categories) {
    if (category.ready.load(std::memory_order_acquire) != 2 || category.domain != domain_ || domain_ == 0) continue;
    if (counts_steps && strcmp(text(category.name), "step") == 0) step_category_ = category.category;
    if (strcmp(text(category.name), "model") == 0) model_category_ = category.category;
    if (strcmp(text(category.name), "parallel") == 0) parallel_category_ = category.category;
  }
}

std::uint8_t RangeNames::compare(wire::StringId name) const {
  if (!shared_->strings.valid(name)) return kKnown;
  const char* text = shared_->strings.text(name);
  std::uint8_t verdict = kKnown;
  if (matches_any(g.settings.step_patterns, text, false)) verdict |= kStep;
  if (matches_any(g.settings.step_patterns, text, true)) verdict |= kPlainStep;
  const char* awaited = g.settings.window_range;
  if (*awaited != '\0' && matches(awaited, strlen(awaited), text)) verdict |= kAwaited;
  return verdict;
}

}  // namespace llmprof::collect
