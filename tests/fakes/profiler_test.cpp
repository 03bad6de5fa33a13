// The fake CUPTI's profilers against a client that knows their rules: what others are tested with must be right itself.
#include "profiler_abi.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <string>
#include <vector>

#include "abi.h"

namespace fake {
namespace {

void* open_fake(const char* name) {
  const std::string path = std::string(std::getenv("LLMPROF_FAKES")) + "/" + name;
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) std::abort();
  return library;
}

template <typename... Arguments>
int cuda(const char* name, Arguments... arguments) {
  static void* library = open_fake("libcuda.so.1");
  return reinterpret_cast<int (*)(Arguments...)>(dlsym(library, name))(arguments...);
}

template <typename Block>
int cupti(const char* name, Block* block, std::size_t bytes) {
  static void* library = open_fake("libcupti.so.13");
  block->params.struct_size = bytes;
  return reinterpret_cast<int (*)(Block*)>(dlsym(library, name))(block);
}
#define CUPTI(name, block, type, last) cupti(name, &(block), FAKE_PARAMS_BYTES(type, last))

// 10 metrics of the hardware and one instrumented: two passes and one.
const char* kMetrics[] = {"gpu__time_duration.sum",
                          "dram__bytes_read.sum",
                          "a__1.sum",
                          "a__2.sum",
                          "a__3.sum",
                          "a__4.sum",
                          "a__5.sum",
                          "a__6.sum",
                          "a__7.sum",
                          "sm__warps_active.avg.pct_of_peak_sustained_active",
                          "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum"};
constexpr std::size_t kCount = std::size(kMetrics);

class Profiler : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(cuda("cuInit", 0u), 0);
    ASSERT_EQ(cuda("cuCtxCreate_v2", &context_, 0u, 0), 0);
    cuda("cuStreamCreate", &stream_, 1u);
    cuda("cuModuleGetFunction", &kernel_, static_cast<void*>(nullptr), "work:1000");
    struct {
      Params params{};
    } start;
    ASSERT_EQ(cupti("cuptiProfilerInitialize", &start, sizeof(Params)), kSuccess);
    HostInitializeParams host{{}, kRangeProfiler, "GH100", nullptr, nullptr};
    ASSERT_EQ(CUPTI("cuptiProfilerHostInitialize", host, HostInitializeParams, host), kSuccess);
    host_ = host.host;
  }

  void TearDown() override {
    if (object_ != nullptr) call("cuptiRangeProfilerDisable");
    cuda("cuCtxDestroy_v2", context_);
  }

  void configure(std::size_t metrics, RangeMode mode, std::size_t most_ranges = 4) {
    AddMetricsParams add{{}, host_, kMetrics, metrics};
    ASSERT_EQ(CUPTI("cuptiProfilerHostConfigAddMetrics", add, AddMetricsParams, metric_count), kSuccess);
    ConfigSizeParams size{{}, host_, 0};
    ASSERT_EQ(CUPTI("cuptiProfilerHostGetConfigImageSize", size, ConfigSizeParams, bytes), kSuccess);
    config_.resize(size.bytes);
    ConfigImageParams image{{}, host_, config_.size(), config_.data()};
    ASSERT_EQ(CUPTI("cuptiProfilerHostGetConfigImage", image, ConfigImageParams, image), kSuccess);
    RangeEnableParams enable{{}, context_, nullptr};
    ASSERT_EQ(CUPTI("cuptiRangeProfilerEnable", enable, RangeEnableParams, object), kSuccess);
    object_ = enable.object;
    EXPECT_EQ(call("cuptiRangeProfilerStart"), kInvalidOperation);  // without a configuration
    RangeDataSizeParams bytes{{}, object_, kMetrics, metrics, most_ranges, static_cast<std::uint32_t>(most_ranges), 0};
    ASSERT_EQ(CUPTI("cuptiRangeProfilerGetCounterDataSize", bytes, RangeDataSizeParams, bytes), kSuccess);
    data_.resize(bytes.bytes);
    mode_ = mode;
    most_ranges_ = most_ranges;
    ASSERT_EQ(set_config(), kSuccess);
  }

  int set_config(ReplayMode replay = kUserReplay) {
    DataInitializeParams clear{{}, object_, data_.size(), data_.data()};
    CUPTI("cuptiRangeProfilerCounterDataImageInitialize", clear, DataInitializeParams, image);
    RangeConfigParams set{
        {}, object_, config_.size(), config_.data(), data_.size(), data_.data(), mode_, replay, most_ranges_, 1, 1,
        0,  1};
    return CUPTI("cuptiRangeProfilerSetConfig", set, RangeConfigParams, target_nesting_level);
  }

  int call(const char* name) {
    RangeParams block{{}, object_};
    return CUPTI(name, block, RangeParams, object);
  }
  int push(const char* name) {
    RangePushParams block{{}, object_, name};
    return CUPTI("cuptiRangeProfilerPushRange", block, RangePushParams, name);
  }
  int stop(bool* all) {
    RangeStopParams block{{}, object_, 0, 0, 0};
    const int result = CUPTI("cuptiRangeProfilerStop", block, RangeStopParams, all_passes_submitted);
    *all = block.all_passes_submitted != 0;
    return result;
  }
  void launch(int times) {
    for (int i = 0; i < times; ++i) {
      EXPECT_EQ(cuda("cuLaunchKernel", kernel_, 1u, 1u, 1u, 32u, 1u, 1u, 0u, stream_, static_cast<void**>(nullptr),
                     static_cast<void**>(nullptr)),
                0);
    }
  }
  std::size_t decode() {
    RangeDecodeParams block{{}, object_, 0};
    EXPECT_EQ(CUPTI("cuptiRangeProfilerDecodeData", block, RangeDecodeParams, dropped), kSuccess);
    RangeDataInfoParams info{{}, data_.data(), data_.size(), 0};
    EXPECT_EQ(CUPTI("cuptiRangeProfilerGetCounterDataInfo", info, RangeDataInfoParams, ranges), kSuccess);
    return info.ranges;
  }
  std::vector<double> values(std::size_t range) {
    std::vector<double> values(kCount);
    EvaluateParams block{{}, host_, data_.data(), data_.size(), range, kMetrics, kCount, values.data()};
    EXPECT_EQ(CUPTI("cuptiProfilerHostEvaluateToGpuValues", block, EvaluateParams, values), kSuccess);
    return values;
  }

  void *context_ = nullptr, *stream_ = nullptr, *kernel_ = nullptr, *host_ = nullptr, *object_ = nullptr;
  RangeMode mode_ = kUserRange;
  std::size_t most_ranges_ = 0;
  std::vector<std::uint8_t> config_, data_;
};

// "dram__bytes_read.sum": the bytes of the name add up to 2055 = 21 * 97 + 18, so it weighs 19.
constexpr double kWeightOfReads = 19;

TEST_F(Profiler, a_pass_after_the_other) {
  configure(kCount, kUserRange);
  PassesParams passes{{}, config_.size(), config_.data(), 0};
  ASSERT_EQ(CUPTI("cuptiProfilerHostGetNumOfPasses", passes, PassesParams, passes), kSuccess);
  ASSERT_EQ(passes.passes, 3u);  // ten in two, instrumented ones apart
  EXPECT_EQ(push("1"), kInvalidOperation);
  bool all = false;
  for (int pass = 0; pass < 3; ++pass) {
    EXPECT_FALSE(all);
    ASSERT_EQ(call("cuptiRangeProfilerStart"), kSuccess);
    launch(5);  // outside of the range
    ASSERT_EQ(push("1"), kSuccess);
    launch(2 + pass);
    EXPECT_EQ(stop(&all), kInvalidOperation);  // the range is open
    ASSERT_EQ(call("cuptiRangeProfilerPopRange"), kSuccess);
    EXPECT_EQ(call("cuptiRangeProfilerPopRange"), kInvalidOperation);
    ASSERT_EQ(stop(&all), kSuccess);
  }
  EXPECT_TRUE(all);
  EXPECT_EQ(call("cuptiRangeProfilerStart"), kInvalidOperation);  // all passes were made
  ASSERT_EQ(decode(), 1u);
  const std::vector<double> found = values(0);
  EXPECT_EQ(found[0], 2000);  // two kernels of 1,000 ns in the first pass
  EXPECT_EQ(found[1], kWeightOfReads * 2000);
  EXPECT_EQ(found[9] > 0 && found[9] <= 97, true);
  EXPECT_EQ(std::fmod(found[10], 4000), 0);  // four in the third
  EXPECT_GT(found[10], 0);
}

TEST_F(Profiler, metrics_stay_the_first_ones) {
  configure(1, kUserRange);
  AddMetricsParams add{{}, host_, kMetrics + 1, 1};
  ASSERT_EQ(CUPTI("cuptiProfilerHostConfigAddMetrics", add, AddMetricsParams, metric_count), kSuccess);
  ConfigSizeParams size{{}, host_, 0};
  CUPTI("cuptiProfilerHostGetConfigImageSize", size, ConfigSizeParams, bytes);
  config_.resize(size.bytes);
  ConfigImageParams image{{}, host_, config_.size(), config_.data()};
  CUPTI("cuptiProfilerHostGetConfigImage", image, ConfigImageParams, image);
  ASSERT_EQ(set_config(), kSuccess);
  bool all = false;
  call("cuptiRangeProfilerStart"), push("1"), launch(1), call("cuptiRangeProfilerPopRange"), stop(&all);
  EXPECT_TRUE(all);
  ASSERT_EQ(decode(), 1u);
  EXPECT_EQ(values(0)[0], 1000);
  EXPECT_TRUE(std::isnan(values(0)[1]));
}

TEST_F(Profiler, automatic_ranges_count_on_and_fail_around_graphs) {
  configure(1, kAutoRange);
  EXPECT_EQ(push("1"), kInvalidOperation);
  bool all = false;
  ASSERT_EQ(call("cuptiRangeProfilerStart"), kSuccess);
  launch(3);
  ASSERT_EQ(stop(&all), kSuccess);
  ASSERT_EQ(decode(), 3u);
  EXPECT_EQ(values(2)[0], 1000);
  ASSERT_EQ(set_config(), kSuccess);
  call("cuptiRangeProfilerStart"), launch(1), stop(&all);
  ASSERT_EQ(decode(), 1u);
  RangeInfoParams info{{}, data_.data(), data_.size(), 0, "/", nullptr};
  ASSERT_EQ(CUPTI("cuptiRangeProfilerCounterDataGetRangeInfo", info, RangeInfoParams, name), kSuccess);
  EXPECT_STREQ(info.name, "3");

  void *graph = nullptr, *exec = nullptr;
  cuda("cuStreamBeginCapture_v2", stream_, 0);
  launch(2);
  ASSERT_EQ(cuda("cuStreamEndCapture", stream_, &graph), 0);
  cuda("cuGraphInstantiateWithFlags", &exec, graph, std::uint64_t{0});
  ASSERT_EQ(set_config(), kSuccess);
  call("cuptiRangeProfilerStart");
  EXPECT_EQ(cuda("cuGraphLaunch", exec, stream_), 0);
  EXPECT_EQ(stop(&all), kUnknownError);
}

TEST_F(Profiler, a_call_breaks_a_capture) {
  configure(1, kUserRange);
  ASSERT_EQ(call("cuptiRangeProfilerStart"), kSuccess);
  void* graph = nullptr;
  cuda("cuStreamBeginCapture_v2", stream_, 0);
  launch(1);
  EXPECT_EQ(push("1"), kUnknownError);
  EXPECT_EQ(cuda("cuStreamEndCapture", stream_, &graph), kCudaCaptureInvalidated);
  EXPECT_EQ(push("1"), kSuccess);
}

TEST_F(Profiler, user_ranges_are_not_replayed_by_kernel) {
  configure(1, kUserRange);
  EXPECT_EQ(set_config(kKernelReplay), kInvalidOperation);
}

TEST_F(Profiler, metrics_that_nobody_has) {
  const char* names[] = {"no_such__metric.sum"};
  AddMetricsParams add{{}, host_, names, 1};
  EXPECT_EQ(CUPTI("cuptiProfilerHostConfigAddMetrics", add, AddMetricsParams, metric_count), kInvalidMetricName);
  HostInitializeParams host{{}, kRangeProfiler, "ZZ100", nullptr, nullptr};
  EXPECT_EQ(CUPTI("cuptiProfilerHostInitialize", host, HostInitializeParams, host), kInvalidChipName);
}

TEST_F(Profiler, a_dead_context_and_a_second_one) {
  configure(1, kUserRange);
  RangeEnableParams again{{}, context_, nullptr};
  EXPECT_EQ(CUPTI("cuptiRangeProfilerEnable", again, RangeEnableParams, object), kInvalidOperation);
  ASSERT_EQ(call("cuptiRangeProfilerStart"), kSuccess);
  ASSERT_EQ(cuda("cuCtxDestroy_v2", context_), 0);
  EXPECT_EQ(push("1"), kInvalidContext);
  object_ = nullptr;
}

}  // namespace
}  // namespace fake
