#include "collect/names.h"

#include <sys/mman.h>
#include <wchar.h>

#include "collect/futex.h"
#include "wire/utf8.h"

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
  explicit Scratch(std::size_t bytes)
      : bytes_(bytes), memory_(mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) {}
  ~Scratch() {
    if (get() != nullptr) munmap(memory_, bytes_);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  char* get() const { return memory_ != MAP_FAILED ? static_cast<char*>(memory_) : nullptr; }

 private:
  KeepErrno keep_;
  std::size_t bytes_;
  void* memory_;
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

}  // namespace llmprof::collect
