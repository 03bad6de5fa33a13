#pragma once
// What hooks name and define: strings, definitions, domains, categories, libraries, and facts about the collection.

#include <string.h>

#include "collect/lifecycle.h"
#include "collect/state.h"
#include "wire/format.h"

namespace llmprof::collect {

// Names as the hooks meet them: C strings of any origin. Longer than 64 KiB: cut, with a hash of the whole at
// the end, and counted; table full: "<other>" and counted. Bytes are kept as they are; wide strings become UTF-8.

wire::StringId intern(const char* text);          // null: 0
wire::StringId intern_wide(const wchar_t* text);  // null: 0
wire::StringId intern_bytes(const char* text, std::size_t length);

// Interns into the process's table; full or off: 0, counted.
wire::DefinitionId define(const wire::Record& record);

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

// Domains, categories and libraries: defined rarely, from any thread, and written into every log of the process.

// The number of the domain of this name (a second creation gives the same); 0, the default domain, when full.
std::uint32_t define_domain(wire::StringId name);
void define_category(std::uint32_t domain, std::uint32_t category, wire::StringId name);
void define_library(wire::StringId path, std::uint8_t hooked);  // as LibraryRecord has it

// What is said about the collection itself: devices, notes, gaps. Few, from any thread, and in every log of the
// process.

// A kDevice, kNote or kGap record. The first 4096 are kept, others counted.
void state_fact(const wire::Record& record);

// GPU activity between these times is missing.
void state_gap(std::uint64_t begin_ns, std::uint64_t end_ns, const char* why);

// A kNote.
[[gnu::format(printf, 2, 3)]] void note(const char* subject, const char* format, ...);

}  // namespace llmprof::collect
