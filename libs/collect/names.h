#pragma once
// Names as the hooks meet them: C strings of any origin. Longer than 64 KiB: cut, with a hash of the whole at
// the end, and counted; table full: "<other>" and counted. Bytes are kept as they are; wide strings become UTF-8.

#include <string.h>

#include "collect/lifecycle.h"

namespace llmprof::collect {

wire::StringId intern(const char* text);          // null: 0
wire::StringId intern_wide(const wchar_t* text);  // null: 0
wire::StringId intern_bytes(const char* text, std::size_t length);

// The common case: the same literal again. Looked up by address, compared by content (addresses get reused).
inline wire::StringId intern_cached(Thread* thread, const char* text) {
  if (text == nullptr) return 0;
  const auto address = reinterpret_cast<std::uintptr_t>(text);
  wire::StringId& cached = thread->name_cache[(address ^ (address >> 6)) % kNameCacheSlots];
  const StringTable& strings = g.shared.load(std::memory_order_relaxed)->strings;
  if (cached != 0 && strcmp(strings.text(cached), text) == 0) return cached;
  const wire::StringId id = intern(text);
  cached = id == kOtherName ? 0 : id;
  return id;
}

}  // namespace llmprof::collect
