#include "collect/cuda/buffers.h"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <set>
#include <thread>
#include <vector>

namespace llmprof::collect::cupti {
namespace {

bool is_zero(const std::uint8_t* bytes, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    if (bytes[i] != 0) return false;
  }
  return true;
}

TEST(BufferPool, LendsAFixedNumberOfZeroedBuffers) {
  const auto pool = std::make_unique<BufferPool>();
  ASSERT_TRUE(pool->reserve(4u << 20));  // 16 of 256 KiB: small pools have small buffers
  EXPECT_EQ(pool->buffer_bytes(), 256u << 10);
  std::set<std::uint8_t*> lent;
  while (std::uint8_t* buffer = pool->lend()) {
    EXPECT_TRUE(is_zero(buffer, pool->buffer_bytes()));
    lent.insert(buffer);
  }
  EXPECT_EQ(lent.size(), 16u);
  EXPECT_EQ(pool->lent(), 16u);
}

TEST(BufferPool, WhatWasReadIsZeroedAndLentAgain) {
  const auto pool = std::make_unique<BufferPool>();
  ASSERT_TRUE(pool->reserve(1u << 20));
  std::uint8_t* buffer = pool->lend();
  std::memset(buffer, 7, 1000);
  EXPECT_EQ(pool->give_back(buffer, 1000), Returned::kQueued);
  std::size_t valid = 0;
  ASSERT_EQ(pool->next(&valid), buffer);
  EXPECT_EQ(valid, 1000u);
  EXPECT_EQ(pool->next(&valid), nullptr);
  pool->free(buffer);
  EXPECT_EQ(pool->waiting(), 0u);
  EXPECT_EQ(pool->lend(), buffer);
  EXPECT_TRUE(is_zero(buffer, pool->buffer_bytes()));
}

TEST(BufferPool, ComesBackInOrder) {
  const auto pool = std::make_unique<BufferPool>();
  ASSERT_TRUE(pool->reserve(1u << 20));
  std::uint8_t *first = pool->lend(), *second = pool->lend(), *third = pool->lend();
  pool->give_back(second, 1);
  pool->give_back(first, 2);
  std::size_t valid = 0;
  EXPECT_EQ(pool->next(&valid), second);
  pool->give_back(third, 3);  // while the others are being read
  EXPECT_EQ(pool->next(&valid), first);
  EXPECT_EQ(pool->next(&valid), third);
  EXPECT_EQ(valid, 3u);
}

TEST(BufferPool, WrongReturnsTouchNothing) {
  const auto pool = std::make_unique<BufferPool>();
  std::uint8_t stray[16] = {};
  EXPECT_EQ(pool->give_back(stray, 8), Returned::kUnknown);  // nothing is there yet
  ASSERT_TRUE(pool->reserve(1u << 20));
  EXPECT_EQ(pool->give_back(stray, 8), Returned::kUnknown);
  EXPECT_EQ(pool->give_back(nullptr, 8), Returned::kUnknown);
  std::uint8_t* buffer = pool->lend();
  EXPECT_EQ(pool->give_back(buffer + 1, 8), Returned::kUnknown);                     // inside of one
  EXPECT_EQ(pool->give_back(buffer + pool->buffer_bytes(), 8), Returned::kUnknown);  // never lent
  EXPECT_EQ(pool->give_back(buffer, 8), Returned::kQueued);
  EXPECT_EQ(pool->give_back(buffer, 8), Returned::kUnknown);  // twice
  EXPECT_EQ(pool->lent(), 0u);
  std::size_t valid = 0;
  EXPECT_EQ(pool->next(&valid), buffer);
  EXPECT_EQ(pool->give_back(buffer, 8), Returned::kUnknown);  // while it is read
  pool->free(buffer);
  EXPECT_EQ(pool->give_back(buffer, 8), Returned::kUnknown);
}

TEST(BufferPool, EmptyAndOverlongReturns) {
  const auto pool = std::make_unique<BufferPool>();
  ASSERT_TRUE(pool->reserve(1u << 20));
  std::uint8_t* buffer = pool->lend();
  EXPECT_EQ(pool->give_back(buffer, 0), Returned::kEmpty);
  EXPECT_EQ(pool->lend(), buffer);
  EXPECT_EQ(pool->give_back(buffer, ~std::size_t{0}), Returned::kQueued);
  std::size_t valid = 0;
  pool->next(&valid);
  EXPECT_EQ(valid, pool->buffer_bytes());
}

TEST(BufferPool, ScrapIsTakenBackAndNeverRead) {
  const auto pool = std::make_unique<BufferPool>();
  ASSERT_TRUE(pool->reserve(1u << 20));
  for (std::uint32_t i = 0; i < 3 * kScrapBuffers; ++i) {
    std::uint8_t* scrap = pool->scrap();
    std::memset(scrap, 1, kSmallestBuffer);  // all of it is ours
    EXPECT_EQ(pool->give_back(scrap, 100), Returned::kScrap);
  }
  std::size_t valid = 0;
  EXPECT_EQ(pool->next(&valid), nullptr);
}

TEST(BufferPool, ManyThreadsLendAndOneReads) {
  const auto pool = std::make_unique<BufferPool>();
  ASSERT_TRUE(pool->reserve(1u << 20));
  constexpr int kThreads = 4, kRounds = 2000;
  std::atomic<int> refused{0}, returned{0}, running{kThreads};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < kRounds; ++i) {
        std::uint8_t* buffer = pool->lend();
        if (buffer == nullptr) {
          ++refused;
          continue;
        }
        EXPECT_EQ(buffer[0], 0);  // nobody else has it
        buffer[0] = 1;
        EXPECT_EQ(pool->give_back(buffer, 64), Returned::kQueued);
        ++returned;
      }
      --running;
    });
  }
  int read = 0;
  std::size_t valid = 0;
  for (bool last = false; !last;) {
    last = running.load() == 0;
    while (std::uint8_t* buffer = pool->next(&valid)) {
      ++read;
      pool->free(buffer);
    }
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(read, returned.load());
  EXPECT_EQ(refused.load() + returned.load(), kThreads * kRounds);
  EXPECT_EQ(pool->lent(), 0u);
}

}  // namespace
}  // namespace llmprof::collect::cupti
