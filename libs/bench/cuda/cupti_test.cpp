// The client against a CUPTI of our own: the same calls and layouts, no GPU. Built where CUDA's headers are.

#include "bench/cuda/cupti.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <set>

#include "bench/cuda/cupti_api.h"

namespace llmprof::bench::cuda {
namespace {

struct Fake {
  CUpti_BuffersCallbackRequestFunc request = nullptr;
  CUpti_BuffersCallbackCompleteFunc complete = nullptr;
  std::set<CUpti_ActivityKind> enabled;
  CUptiResult subscribing = CUPTI_SUCCESS;
  CUptiResult enabling_memset = CUPTI_SUCCESS;
  std::uint32_t version = 130001;
  std::size_t dropped = 0;
  std::uint8_t* buffer = nullptr;  // being filled
  std::size_t used = 0;
  bool was_zeroed = true;

  template <class Record>
  void write(const Record& record) {
    if (buffer == nullptr) {
      std::size_t bytes = 0, most = 1;
      request(&buffer, &bytes, &most);
      ASSERT_NE(buffer, nullptr);
      ASSERT_EQ(most, 0u);
      for (std::size_t i = 0; i < bytes; ++i) was_zeroed = was_zeroed && buffer[i] == 0;
    }
    std::memcpy(buffer + used, &record, sizeof(record));
    used += sizeof(record);
  }
  void kernel(const char* name, std::uint32_t correlation, std::uint64_t begin, std::uint64_t end) {
    if (!enabled.contains(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL)) return;
    CUpti_ActivityKernel9 record{};
    record.kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
    record.name = name, record.correlationId = correlation, record.start = begin, record.end = end;
    write(record);
  }
};
Fake* fake = nullptr;

std::size_t size_of(CUpti_ActivityKind kind) {
  if (kind == CUPTI_ACTIVITY_KIND_MEMSET) return sizeof(CUpti_ActivityMemset4);
  if (kind == CUPTI_ACTIVITY_KIND_MEMCPY) return sizeof(CUpti_ActivityMemcpy5);
  return sizeof(CUpti_ActivityKernel9);
}

CuptiApi fake_api() {
  CuptiApi api;
  api.version = [](std::uint32_t* version) { return *version = fake->version, CUPTI_SUCCESS; };
  api.result_string = [](CUptiResult, const char** text) { return *text = "CUPTI_ERROR_FAKE", CUPTI_SUCCESS; };
  api.subscribe = [](CUpti_SubscriberHandle*, CUpti_CallbackFunc, void*) { return fake->subscribing; };
  api.register_callbacks = [](CUpti_BuffersCallbackRequestFunc request, CUpti_BuffersCallbackCompleteFunc complete) {
    fake->request = request, fake->complete = complete;
    return CUPTI_SUCCESS;
  };
  api.enable = [](CUpti_ActivityKind kind) {
    if (kind == CUPTI_ACTIVITY_KIND_MEMSET && fake->enabling_memset != CUPTI_SUCCESS) return fake->enabling_memset;
    fake->enabled.insert(kind);
    return CUPTI_SUCCESS;
  };
  api.disable = [](CUpti_ActivityKind kind) { return fake->enabled.erase(kind), CUPTI_SUCCESS; };
  api.flush_all = [](std::uint32_t) {
    if (fake->buffer != nullptr) fake->complete(nullptr, 0, fake->buffer, 0, fake->used);
    fake->buffer = nullptr, fake->used = 0;
    return CUPTI_SUCCESS;
  };
  api.next_record = [](std::uint8_t* buffer, std::size_t valid, CUpti_Activity** record) {
    auto* at = reinterpret_cast<std::uint8_t*>(*record);
    at = at == nullptr ? buffer : at + size_of((*record)->kind);
    if (at >= buffer + valid) return CUPTI_ERROR_MAX_LIMIT_REACHED;
    *record = reinterpret_cast<CUpti_Activity*>(at);
    return CUPTI_SUCCESS;
  };
  api.dropped = [](CUcontext, std::uint32_t, std::size_t* count) { return *count = fake->dropped, CUPTI_SUCCESS; };
  return api;
}

class CuptiTest : public testing::Test {
 protected:
  CuptiTest() { fake = &fake_; }
  std::unique_ptr<Cupti> opened() {
    Result<std::unique_ptr<Cupti>> cupti = Cupti::open(fake_api());
    EXPECT_TRUE(cupti);
    return std::move(*cupti);
  }
  Fake fake_;
};

TEST_F(CuptiTest, RecordsOfAllKindsBetweenStartAndStop) {
  const std::unique_ptr<Cupti> cupti = opened();
  fake_.kernel("too_early", 1, 10, 20);  // nothing is enabled yet
  ASSERT_TRUE(cupti->start());
  fake_.kernel("gemm", 2, 100, 250);
  CUpti_ActivityMemset4 set{};
  set.kind = CUPTI_ACTIVITY_KIND_MEMSET, set.correlationId = 3, set.start = 300, set.end = 310;
  fake_.write(set);
  CUpti_ActivityMemcpy5 copy{};
  copy.kind = CUPTI_ACTIVITY_KIND_MEMCPY, copy.correlationId = 4, copy.start = 400, copy.end = 430;
  fake_.write(copy);
  fake_.kernel(nullptr, 5, 500, 550);
  const Result<std::vector<Activity>> found = cupti->stop();
  ASSERT_TRUE(found);
  ASSERT_EQ(found->size(), 4u);
  EXPECT_EQ(found->at(0).name, "gemm");
  EXPECT_EQ(found->at(0).correlation, 2u);
  EXPECT_EQ(found->at(0).begin_ns, 100u);
  EXPECT_EQ(found->at(0).end_ns, 250u);
  EXPECT_EQ(found->at(1).name, "[memset]");
  EXPECT_EQ(found->at(1).end_ns, 310u);
  EXPECT_EQ(found->at(2).name, "[memcpy]");
  EXPECT_EQ(found->at(2).correlation, 4u);
  EXPECT_EQ(found->at(3).name, "[kernel]");
  EXPECT_TRUE(fake_.enabled.empty());
}

TEST_F(CuptiTest, BuffersComeBackZeroedAndEmpty) {
  const std::unique_ptr<Cupti> cupti = opened();
  for (int round = 0; round < 100; ++round) {  // more than there are buffers
    ASSERT_TRUE(cupti->start());
    fake_.kernel("a", 7, 1, 2);
    const Result<std::vector<Activity>> found = cupti->stop();
    ASSERT_TRUE(found);
    ASSERT_EQ(found->size(), 1u);
  }
  EXPECT_TRUE(fake_.was_zeroed);
}

TEST_F(CuptiTest, WhatOthersLeftIsNotOurs) {
  const std::unique_ptr<Cupti> cupti = opened();
  ASSERT_TRUE(cupti->start());
  fake_.kernel("stale", 1, 10, 20);
  fake_api().flush_all(0);
  ASSERT_TRUE(cupti->start());
  EXPECT_TRUE(cupti->stop()->empty());
}

TEST_F(CuptiTest, AnotherToolHoldsIt) {
  fake_.subscribing = CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
  const auto cupti = Cupti::open(fake_api());
  ASSERT_FALSE(cupti);
  EXPECT_EQ(cupti.error().code, ErrorCode::kUnsupported);
  EXPECT_EQ(cupti.error().message, "another tool (a profiler or a debugger) holds CUPTI in this process");
}

TEST_F(CuptiTest, OlderThanItsLayoutsAreKnown) {
  fake_.version = 17;
  EXPECT_EQ(Cupti::open(fake_api()).error().message, "CUPTI's API version 17 is older than CUDA 12");
}

TEST_F(CuptiTest, AKindThatCannotBeHadLeavesNothingEnabled) {
  const std::unique_ptr<Cupti> cupti = opened();
  fake_.enabling_memset = CUPTI_ERROR_NOT_COMPATIBLE;
  const Result<void> started = cupti->start();
  ASSERT_FALSE(started);
  EXPECT_EQ(started.error().message, "cuptiActivityEnable: CUPTI_ERROR_FAKE");
  EXPECT_TRUE(fake_.enabled.empty());
}

TEST_F(CuptiTest, DroppedRecordsAreAnError) {
  const std::unique_ptr<Cupti> cupti = opened();
  ASSERT_TRUE(cupti->start());
  fake_.dropped = 12;
  EXPECT_EQ(cupti->stop().error().message, "CUPTI dropped 12 records");
}

}  // namespace
}  // namespace llmprof::bench::cuda
