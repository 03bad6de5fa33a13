#include "collect/stacks/python_text.h"

#include "collect/stacks/own_memory.h"

namespace llmprof::collect {
namespace {

// PyASCIIObject: the same in all versions that are read.
constexpr std::size_t kObjectType = 8, kTextLength = 16, kTextState = 32;
constexpr std::uint32_t kStateKindShift = 2, kStateCompact = 0x20, kStateAscii = 0x40;
constexpr std::size_t kLetters = 128;  // read at a time

std::size_t put_letter(char* at, std::uint32_t letter) {
  if (letter < 0x80) {
    at[0] = static_cast<char>(letter);
    return 1;
  }
  const std::size_t bytes = letter < 0x800 ? 2 : letter < 0x10000 ? 3 : 4;
  for (std::size_t i = bytes - 1; i > 0; --i, letter >>= 6) at[i] = static_cast<char>(0x80 | (letter & 0x3f));
  at[0] = static_cast<char>((0xf00u >> bytes & 0xff) | letter);
  return bytes;
}

std::uint32_t letter_at(const unsigned char* bytes, std::size_t index, std::size_t width) {
  std::uint32_t letter = 0;
  __builtin_memcpy(&letter, bytes + index * width, width);
  return letter;
}

}  // namespace

int read_python_text(const PythonRuntime& runtime, std::uintptr_t object, char (&out)[kMaxText]) {
  std::uintptr_t type = 0;
  std::int64_t length = 0;
  std::uint32_t state = 0;
  if (!read_own_memory(object + kObjectType, &type, sizeof(type)) || type != runtime.text_type) return -1;
  if (!read_own_memory(object + kTextLength, &length, sizeof(length)) || length < 0) return -1;
  if (!read_own_memory(object + kTextState, &state, sizeof(state)) || (state & kStateCompact) == 0) return -1;
  const std::uint32_t width = state >> kStateKindShift & 7;
  if (width != 1 && width != 2 && width != 4) return -1;
  const bool ascii = (state & kStateAscii) != 0;
  const std::uintptr_t text = object + (ascii ? runtime.layout.text_of_ascii : runtime.layout.text_of_others);
  unsigned char part[kLetters * 4];
  std::size_t bytes = 0, done = 0;
  const auto letters = static_cast<std::size_t>(length);
  while (done < letters && bytes + 4 <= kMaxText) {
    const std::size_t count = letters - done < kLetters ? letters - done : kLetters;
    if (!read_own_memory(text + done * width, part, count * width)) return -1;
    for (std::size_t i = 0; i < count && bytes + 4 <= kMaxText; ++i)
      bytes += put_letter(out + bytes, letter_at(part, i, width));
    done += count;
  }
  return static_cast<int>(bytes);
}

}  // namespace llmprof::collect
