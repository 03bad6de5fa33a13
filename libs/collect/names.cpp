#include "collect/names.h"

#include <stdarg.h>
#include <stdio.h>
#include <sys/mman.h>
#include <wchar.h>

#include "collect/os.h"
#include "wire/primitives.h"

namespace llmprof::collect {

namespace {

std::size_t to_utf8(const wchar_t* text, char* out, std::size_t capacity) {
  std::size_t length = 0;
  for (; *text != L'\0' && length + 4 <= capacity; ++text) {
    const auto point = static_cast<std::uint32_t>(*text);
    const bool valid = point <= 0x10ffff && (point < 0xd800 || point >= 0xe000);
    length += wire::put_utf8(out + length, valid ? point : 0xfffd);
  }
  return length;
}

// Memory for one long name: hooks may run on tiny stacks, and never call malloc.
class Scratch {
 public:
  explicit Scratch(std::size_t bytes) : bytes_(bytes), memory_(static_cast<char*>(map_memory(bytes))) {}
  ~Scratch() {
    if (memory_ != nullptr) munmap(memory_, bytes_);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  char* get() const { return memory_; }

 private:
  KeepErrno keep_;
  std::size_t bytes_;
  char* memory_;
};

// Writes '#' and the hash of all bytes in hexadecimal, so that names which begin alike stay apart when they are cut.
constexpr std::size_t kHashBytes = 17;
void put_hash(char* at, const char* text, std::size_t length) {
  std::uint64_t hash = 0xcbf29ce484222325u;  // FNV-1a
  for (std::size_t i = 0; i < length; ++i) hash = (hash ^ static_cast<std::uint8_t>(text[i])) * 0x100000001b3u;
  *at++ = '#';
  for (int shift = 60; shift >= 0; shift -= 4) *at++ = "0123456789abcdef"[hash >> shift & 15];
}

wire::StringId intern_cut(StringTable& strings, const char* text, std::size_t length) {
  count_loss(wire::LossKind::kNameTruncated);
  const Scratch scratch(wire::kMaxNameBytes);
  if (scratch.get() == nullptr) return strings.intern(text, wire::kMaxNameBytes);
  constexpr std::size_t kKept = wire::kMaxNameBytes - kHashBytes;
  memcpy(scratch.get(), text, kKept);
  put_hash(scratch.get() + kKept, text, length);
  return strings.intern(scratch.get(), wire::kMaxNameBytes);
}

}  // namespace

wire::StringId intern_bytes(const char* text, std::size_t length) {
  Shared* shared = shared_memory();
  if (shared == nullptr) return 0;
  StringTable& strings = shared->strings;
  const wire::StringId id =
      length > wire::kMaxNameBytes ? intern_cut(strings, text, length) : strings.intern(text, length);
  if (id != 0) return id;
  count_loss(wire::LossKind::kStringTableFull);
  return kOtherName;
}

wire::DefinitionId define(const wire::Record& record) {
  Shared* shared = shared_memory();
  const wire::DefinitionId id = shared != nullptr ? shared->definitions.intern(record) : 0;
  if (id == 0 && shared != nullptr) count_loss(wire::LossKind::kDefinitionsFull);
  return id;
}

wire::StringId intern(const char* text) { return text != nullptr ? intern_bytes(text, strlen(text)) : 0; }

wire::StringId intern_wide(const wchar_t* text) {
  if (text == nullptr) return 0;
  char small[256];
  const std::size_t characters = wcsnlen(text, wire::kMaxNameBytes + 1);
  if (characters * 4 <= sizeof(small)) return intern_bytes(small, to_utf8(text, small, sizeof(small)));
  const Scratch scratch(characters * 4 + 4);
  if (scratch.get() == nullptr) return kOtherName;
  return intern_bytes(scratch.get(), to_utf8(text, scratch.get(), characters * 4 + 4));
}

std::uint32_t define_domain(wire::StringId name) {
  Shared* shared = shared_memory();
  if (shared == nullptr || name == 0) return 0;
  for (std::uint32_t i = 1; i < kMaxDomains; ++i) {  // number 0 is the default domain
    wire::StringId there = 0;
    if (shared->domains[i].name.compare_exchange_strong(there, name, std::memory_order_acq_rel)) {
      g.definitions.fetch_add(1, std::memory_order_release);
      return i;
    }
    if (there == name) return i;
  }
  count_loss(wire::LossKind::kStringTableFull);
  return 0;
}

// `ready` goes 0 (free), 1 (being filled), 2 (defined). A thread lost in a fork leaves one entry unused, no more.
void define_category(std::uint32_t domain, std::uint32_t category, wire::StringId name) {
  Shared* shared = shared_memory();
  if (shared == nullptr) return;
  for (Category& entry : shared->categories) {
    std::uint32_t ready = 0;
    if (entry.ready.compare_exchange_strong(ready, 1, std::memory_order_acq_rel)) {
      entry.domain = domain;
      entry.category = category;
      entry.name = name;
      entry.ready.store(2, std::memory_order_release);
      g.definitions.fetch_add(1, std::memory_order_release);
      return;
    }
    if (ready == 2 && entry.domain == domain && entry.category == category && entry.name == name) return;
  }
  count_loss(wire::LossKind::kStringTableFull);
}

void define_library(wire::StringId path, std::uint8_t hooked) {
  Shared* shared = shared_memory();
  if (shared == nullptr || path == 0) return;
  for (Library& library : shared->libraries) {
    wire::StringId there = 0;
    const bool fresh = library.path.compare_exchange_strong(there, path, std::memory_order_acq_rel);
    if (!fresh && there != path) continue;
    if (!fresh && library.hooked.load(std::memory_order_relaxed) == hooked) return;
    library.hooked.store(hooked, std::memory_order_release);
    g.definitions.fetch_add(1, std::memory_order_release);
    return;
  }
}

void state_fact(const wire::Record& record) {
  Shared* shared = shared_memory();
  if (shared == nullptr) return;
  const std::uint32_t index = shared->fact_count.fetch_add(1, std::memory_order_relaxed);
  if (index >= kMaxFacts) {
    shared->fact_count.store(kMaxFacts, std::memory_order_relaxed);
    return count_loss(wire::LossKind::kDefinitionsFull);
  }
  Fact& fact = shared->facts[index];
  memcpy(static_cast<void*>(&fact.record), &record, sizeof(record));
  fact.ready.store(1, std::memory_order_release);
  g.definitions.fetch_add(1, std::memory_order_release);
}

void state_gap(std::uint64_t begin_ns, std::uint64_t end_ns, const char* why) {
  wire::Record record = wire::blank(wire::RecordKind::kGap);
  record.gap = {begin_ns, end_ns, intern(why)};
  state_fact(record);
}

void note(const char* subject, const char* format, ...) {
  char text[640];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof(text), format, arguments);
  va_end(arguments);
  wire::Record record = wire::blank(wire::RecordKind::kNote);
  record.note = {now_ns(), intern(subject), intern(text)};
  state_fact(record);
}

}  // namespace llmprof::collect
