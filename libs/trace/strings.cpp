#include "trace/strings.h"

#include "trace/utf8.h"

namespace llmprof::trace {

Name Strings::intern(std::string_view text) {
  if (const auto found = ids_.find(text); found != ids_.end()) return Name{found->second};
  if (const std::string clean = storable(text); clean != text) return intern(clean);
  texts_.emplace_back(text);
  const auto id = static_cast<std::uint32_t>(texts_.size());
  ids_.emplace(texts_.back(), id);
  return Name{id};
}

std::string_view Strings::text(Name name) const {
  return name.id == 0 ? std::string_view{} : std::string_view{texts_[name.id - 1]};
}

}  // namespace llmprof::trace
