#include "collect/blas/call.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>

#include "collect/images.h"
#include "collect/os.h"

namespace llmprof::collect::blas {
namespace {

// Objects that were looked at, by their dynamic tables. Used inside walks, which exclude each other. What finds no room
// is looked at again.
struct Looked {
  static constexpr std::size_t kSlots = 4096, kProbes = 8;
  const void* slots[kSlots];
  bool add(const void* object) {
    const auto hash = static_cast<std::size_t>((reinterpret_cast<std::uintptr_t>(object) >> 4) * 0x9E3779B97F4A7C15u);
    for (std::size_t i = 0; i < kProbes; ++i) {
      const void*& slot = slots[(hash + i) % kSlots];
      if (slot == object) return false;
      if (slot != nullptr) continue;
      slot = object;
      return true;
    }
    return true;
  }
};
constinit Looked looked{};
constinit std::atomic<bool> forgets{false};
constinit std::atomic<std::uint64_t> seen_adds{0};

// The page of a slot that the loader has made read-only. Nothing is changed where that cannot be undone for a moment.
class Writable {
 public:
  Writable(const Image& image, const void* slot) {
    const auto page = static_cast<std::uintptr_t>(getpagesize());
    const std::uintptr_t at = reinterpret_cast<std::uintptr_t>(slot) & ~(page - 1);
    if (at < (image.relro_low & ~(page - 1)) || at >= (image.relro_high & ~(page - 1))) return;
    page_ = reinterpret_cast<void*>(at);
    bytes_ = page;
    good_ = mprotect(page_, bytes_, PROT_READ | PROT_WRITE) == 0;
  }
  ~Writable() {
    if (page_ != nullptr && good_) mprotect(page_, bytes_, PROT_READ);
  }
  explicit operator bool() const { return good_; }

 private:
  void* page_ = nullptr;
  std::size_t bytes_ = 0;
  bool good_ = true;
};

bool is_elsewhere(ImageList list, std::size_t self, const char* name) {
  for (std::size_t i = 0; i < list.count; ++i) {
    if (i != self && find_function(list.images[i], name) != nullptr) return true;
  }
  return false;
}

// Only what leads to us: the rest is not ours to change. A slot that is bound at the first call is never called where
// the address is nothing.
void clear_slot(const Image& own, const Image& image, const Import& import) {
  std::uintptr_t value;
  memcpy(&value, import.slot, sizeof(value));
  value -= static_cast<std::uintptr_t>(import.addend);
  if (value < own.low || value >= own.high) return;
  const Writable writable(image, import.slot);
  if (writable)
    __atomic_store_n(static_cast<std::uintptr_t*>(import.slot), static_cast<std::uintptr_t>(import.addend),
                     __ATOMIC_RELAXED);
}

void clear_all(ImageList list) {
  if (forgets.exchange(false)) looked = {};
  const std::size_t self = image_at(list, reinterpret_cast<std::uintptr_t>(&clear_all));
  for (std::size_t i = 0; i < list.count && self < list.count; ++i) {
    const Image& image = list.images[i];
    if (i == self || image.dynamic == nullptr || !looked.add(image.dynamic)) continue;
    bool any = false, absent[kFunctions] = {};  // hooked functions that it refers to weakly and nobody has
    any_import(image, [&](const Import& import) {
      const Function function = import.weak ? function_of(import.name) : kFunctions;
      if (function != kFunctions && !is_elsewhere(list, self, import.name)) any = absent[function] = true;
      return false;
    });
    if (!any) continue;
    any_slot(image, [&](const Import& import) {
      const Function function = import.weak && !import.is_call ? function_of(import.name) : kFunctions;
      if (function != kFunctions && absent[function]) clear_slot(list.images[self], image, import);
      return false;
    });
  }
}

}  // namespace

void clear_weak_references() {
  const std::uint64_t adds =
      count_objects().loaded;  // whoever jumps out of a handler here would jump out of dlsym() as well
  if (adds == seen_adds.load(std::memory_order_relaxed)) return;
  const Undisturbed undisturbed;
  if (with_images(clear_all)) seen_adds.store(adds, std::memory_order_relaxed);
}

void forget_objects() { forgets.store(true); }

}  // namespace llmprof::collect::blas
