#include "collect/names.h"

#include <errno.h>
#include <sys/mman.h>
#include <wchar.h>

namespace llmprof::collect {
namespace {

// Writes one code point; invalid ones become U+FFFD. Returns the number of bytes (at most 4).
std::size_t put_utf8(char* at, std::uint32_t point) {
  if (point > 0x10ffff || (point >= 0xd800 && point < 0xe000)) point = 0xfffd;
  if (point < 0x80) {
    at[0] = static_cast<char>(point);
    return 1;
  }
  const std::size_t bytes = point < 0x800 ? 2 : point < 0x10000 ? 3 : 4;
  for (std::size_t i = bytes - 1; i > 0; --i, point >>= 6) at[i] = static_cast<char>(0x80 | (point & 0x3f));
  at[0] = static_cast<char>((0xf00u >> bytes & 0xff) | point);
  return bytes;
}

std::size_t to_utf8(const wchar_t* text, char* out, std::size_t capacity) {
  std::size_t length = 0;
  for (; *text != L'\0' && length + 4 <= capacity; ++text)
    length += put_utf8(out + length, static_cast<std::uint32_t>(*text));
  return length;
}

}  // namespace

wire::StringId intern_bytes(const char* text, std::size_t length) {
  Shared* shared = shared_memory();
  if (shared == nullptr) return 0;
  if (length > wire::kMaxNameBytes) {
    length = wire::kMaxNameBytes;
    count_loss(wire::LossKind::kNameTruncated);
  }
  const wire::StringId id = shared->strings.intern(text, length);
  if (id != 0) return id;
  count_loss(wire::LossKind::kStringTableFull);
  return kOtherName;
}

wire::StringId intern(const char* text) {
  if (text == nullptr) return 0;
  return intern_bytes(text, strnlen(text, wire::kMaxNameBytes + 1));
}

wire::StringId intern_wide(const wchar_t* text) {
  if (text == nullptr) return 0;
  char small[256];
  const std::size_t characters = wcsnlen(text, wire::kMaxNameBytes + 1);
  if (characters * 4 <= sizeof(small)) return intern_bytes(small, to_utf8(text, small, sizeof(small)));
  const int saved_errno = errno;
  const std::size_t bytes = characters * 4 + 4;  // hooks may run on tiny stacks, and never call malloc
  void* big = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  wire::StringId id = kOtherName;
  if (big != MAP_FAILED) {
    char* out = static_cast<char*>(big);
    id = intern_bytes(out, to_utf8(text, out, bytes));
    munmap(big, bytes);
  }
  errno = saved_errno;
  return id;
}

}  // namespace llmprof::collect
