#pragma once
// Lock-free lists of array elements linked by index (index + 1; 0 ends a list).

#include <atomic>
#include <cstdint>

namespace llmprof::collect {

// A stack that many threads pop from. The tag in the upper half changes with every pop, so that a head that went
// away and came back in the meantime (ABA) is not mistaken for an unchanged one.
template <class Element>
void push(std::atomic<std::uint64_t>& head, Element* array, std::uint32_t index) {
  std::uint64_t old = head.load(std::memory_order_relaxed);
  std::uint64_t fresh;
  do {
    array[index].next.store(static_cast<std::uint32_t>(old), std::memory_order_relaxed);
    fresh = (old & ~0xffffffffull) | (index + 1);
  } while (!head.compare_exchange_weak(old, fresh, std::memory_order_release, std::memory_order_relaxed));
}

// Elements that are linked already, from `first` to `last`.
template <class Element>
void push_chain(std::atomic<std::uint64_t>& head, Element* array, std::uint32_t first, std::uint32_t last) {
  std::uint64_t old = head.load(std::memory_order_relaxed);
  std::uint64_t fresh;
  do {
    array[last].next.store(static_cast<std::uint32_t>(old), std::memory_order_relaxed);
    fresh = (old & ~0xffffffffull) | (first + 1);
  } while (!head.compare_exchange_weak(old, fresh, std::memory_order_release, std::memory_order_relaxed));
}

// The index popped, or -1.
template <class Element>
std::int64_t pop(std::atomic<std::uint64_t>& head, Element* array) {
  std::uint64_t old = head.load(std::memory_order_acquire);
  while (static_cast<std::uint32_t>(old) != 0) {
    const auto index = static_cast<std::uint32_t>(old) - 1;
    const std::uint64_t next = array[index].next.load(std::memory_order_relaxed);
    const std::uint64_t fresh = ((old >> 32) + 1) << 32 | next;
    if (head.compare_exchange_weak(old, fresh, std::memory_order_acquire)) return index;
  }
  return -1;
}

// A list that is only ever taken whole needs no tag.
template <class Element>
void push_full(std::atomic<std::uint32_t>& head, Element* array, std::uint32_t index) {
  std::uint32_t old = head.load(std::memory_order_relaxed);
  do {
    array[index].next.store(old, std::memory_order_relaxed);
  } while (!head.compare_exchange_weak(old, index + 1, std::memory_order_release, std::memory_order_relaxed));
}

// Takes the whole list, oldest first.
template <class Element>
std::uint32_t take_all(std::atomic<std::uint32_t>& head, Element* array) {
  std::uint32_t at = head.exchange(0, std::memory_order_acquire);
  std::uint32_t reversed = 0;
  while (at != 0) {
    const std::uint32_t next = array[at - 1].next.load(std::memory_order_relaxed);
    array[at - 1].next.store(reversed, std::memory_order_relaxed);
    reversed = at;
    at = next;
  }
  return reversed;
}

}  // namespace llmprof::collect
