// Somebody else's preload: an allocator. Never gives memory back, aligns to 64, fills what it hands out with 0xa5, so
// that code which takes fresh memory for zeros is found out.

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>

#include <atomic>

namespace {

constexpr size_t kBytes = size_t{4} << 30;  // of addresses; pages are used as they are touched
constexpr size_t kHead = 64;

char* take(size_t size, size_t alignment) {
  static std::atomic<char*> base{nullptr};
  static std::atomic<size_t> used{0};
  char* start = base.load();
  if (start == nullptr) {
    void* memory = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) return nullptr;
    if (!base.compare_exchange_strong(start, static_cast<char*>(memory))) {
      munmap(memory, kBytes);
    } else {
      start = static_cast<char*>(memory);
    }
  }
  if (alignment < kHead) alignment = kHead;
  const size_t bytes = (size + kHead + alignment + kHead - 1) / kHead * kHead;
  const size_t at = used.fetch_add(bytes);
  if (at + bytes > kBytes) return nullptr;
  const auto address = reinterpret_cast<size_t>(start + at + kHead);
  char* result = reinterpret_cast<char*>((address + alignment - 1) / alignment * alignment);
  memcpy(result - sizeof(size_t), &size, sizeof(size));
  memset(result, 0xa5, size);
  return result;
}

}  // namespace

extern "C" {

void* malloc(size_t size) { return take(size, 0); }
void free(void*) {}
void* calloc(size_t count, size_t size) {
  void* result = take(count * size, 0);
  return result != nullptr ? memset(result, 0, count * size) : nullptr;
}
void* realloc(void* old, size_t size) {
  void* result = take(size, 0);
  if (result == nullptr || old == nullptr) return result;
  size_t before;
  memcpy(&before, static_cast<char*>(old) - sizeof(size_t), sizeof(before));
  return memcpy(result, old, before < size ? before : size);
}
void* memalign(size_t alignment, size_t size) { return take(size, alignment); }
void* aligned_alloc(size_t alignment, size_t size) { return take(size, alignment); }
int posix_memalign(void** out, size_t alignment, size_t size) {
  *out = take(size, alignment);
  return *out != nullptr ? 0 : ENOMEM;
}
size_t malloc_usable_size(void* memory) {
  size_t size = 0;
  if (memory != nullptr) memcpy(&size, static_cast<char*>(memory) - sizeof(size_t), sizeof(size));
  return size;
}
}
