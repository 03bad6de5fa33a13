#include "trace/strings.h"

#include "base/strings.h"

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

std::string storable(std::string_view text) {
  static constexpr char kHex[] = "0123456789abcdef";
  std::string out;
  out.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    if (const std::size_t bytes = base::utf8_bytes(text.substr(at)); bytes != 0) {
      out.append(text, at, bytes);
      at += bytes;
    } else {
      const auto byte = static_cast<unsigned char>(text[at++]);
      out += {'\\', 'x', kHex[byte >> 4], kHex[byte & 15]};
    }
  }
  return out;
}

}  // namespace llmprof::trace
