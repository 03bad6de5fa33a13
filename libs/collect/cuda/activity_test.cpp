#include "collect/cuda/activity.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <string.h>

#include <memory>
#include <string>

#include "collect/lifecycle.h"
#include "collect/tables.h"

namespace llmprof::collect::cupti {
namespace {

class Activities : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    setenv("LLMPROF_CAPTURE_DIR", "/tmp", 1);  // nothing is written: no event is raised
    ASSERT_NE(shared_memory(), nullptr);
  }
  static KernelActivity kernel(const char* name) {
    KernelActivity activity{};
    activity.kind = kConcurrentKernel;
    activity.name = name;
    activity.start = 1000;
    activity.end = 1500;
    activity.grid_x = 132;
    activity.grid_y = activity.grid_z = 1;
    activity.block_x = 256;
    activity.block_y = activity.block_z = 1;
    activity.registers = 64;
    activity.correlation = 42;
    activity.stream = 7;
    activity.device = 1;
    return activity;
  }
  Converted take(const void* activity) {
    return convert(static_cast<const Activity*>(activity), shapes.get(), &record);
  }
  static const wire::KernelShapeRecord& shape(wire::DefinitionId id) {
    return shared_memory()->definitions.record(id).kernel_shape;
  }
  static std::string name(wire::StringId id) { return shared_memory()->strings.text(id); }

  std::unique_ptr<ShapeCache> shapes = std::make_unique<ShapeCache>();
  wire::Record record{};
};

TEST_F(Activities, Kernel) {
  KernelActivity activity = kernel("gemm");
  activity.graph = 3;
  activity.graph_node = 0x300000005;
  activity.cluster_x = 2;
  activity.dynamic_shared = 4096;
  ASSERT_EQ(take(&activity), Converted::kRecord);
  EXPECT_EQ(record.kind, wire::RecordKind::kKernel);
  EXPECT_EQ(record.kernel.begin_ns, 1000u);
  EXPECT_EQ(record.kernel.end_ns, 1500u);
  EXPECT_EQ(record.kernel.correlation, 42u);
  EXPECT_EQ(record.kernel.stream, 7u);
  EXPECT_EQ(record.kernel.device, 1u);
  EXPECT_EQ(record.kernel.graph, 3u);
  EXPECT_EQ(record.kernel.graph_node, 0x300000005u);
  const wire::KernelShapeRecord& found = shape(record.kernel.shape);
  EXPECT_EQ(name(found.name), "gemm");
  EXPECT_EQ(found.grid_x, 132u);
  EXPECT_EQ(found.block_x, 256u);
  EXPECT_EQ(found.registers, 64u);
  EXPECT_EQ(found.cluster_x, 2u);
  EXPECT_EQ(found.dynamic_shared_bytes, 4096u);
}

TEST_F(Activities, ShapesAreTheSameForTheSame) {
  KernelActivity activity = kernel("same");
  take(&activity);
  const wire::DefinitionId first = record.kernel.shape;
  activity.start = 2000;
  activity.end = 2001;
  take(&activity);
  EXPECT_EQ(record.kernel.shape, first);
  activity.grid_x = 133;
  take(&activity);
  EXPECT_NE(record.kernel.shape, first);
  activity.grid_x = 132;
  const std::string copy = "same";  // elsewhere
  activity.name = copy.c_str();
  take(&activity);
  EXPECT_EQ(record.kernel.shape, first);
}

TEST_F(Activities, AnAddressMayHoldAnotherNameLater) {
  char text[8] = "one";
  KernelActivity activity = kernel(text);
  take(&activity);
  const wire::DefinitionId first = record.kernel.shape;
  strcpy(text, "two");
  take(&activity);
  EXPECT_NE(record.kernel.shape, first);
  EXPECT_EQ(name(shape(record.kernel.shape).name), "two");
}

TEST_F(Activities, AKernelWithoutName) {
  KernelActivity activity = kernel(nullptr);
  ASSERT_EQ(take(&activity), Converted::kRecord);
  EXPECT_EQ(shape(record.kernel.shape).name, 0u);
}

TEST_F(Activities, ValuesThatDoNotFitStayAtTheEnd) {
  KernelActivity activity = kernel("wide");
  activity.block_x = 100000;
  activity.grid_z = -1;
  activity.device = 1u << 20;
  take(&activity);
  EXPECT_EQ(shape(record.kernel.shape).block_x, 65535u);
  EXPECT_EQ(shape(record.kernel.shape).grid_z, 0u);
  EXPECT_EQ(record.kernel.device, 65535u);
}

TEST_F(Activities, TimesThatWereLost) {
  KernelActivity activity = kernel("lost");
  activity.start = activity.end = 0;
  EXPECT_EQ(take(&activity), Converted::kZeroTimes);
  CopyActivity copy{};
  copy.kind = kMemcpy;
  EXPECT_EQ(take(&copy), Converted::kZeroTimes);
  GraphActivity graph{};
  graph.kind = kGraphTrace;
  graph.start = 5;
  EXPECT_EQ(take(&graph), Converted::kZeroTimes);
}

TEST_F(Activities, Copies) {
  CopyActivity copy{};
  copy.kind = kMemcpy;
  copy.copy_kind = kCopyDeviceToHost;
  copy.source_kind = kMemoryDevice;
  copy.target_kind = kMemoryPinned;
  copy.bytes = 4096;
  copy.start = 10;
  copy.end = 20;
  copy.correlation = 9;
  ASSERT_EQ(take(&copy), Converted::kRecord);
  EXPECT_EQ(record.copy.kind, wire::CopyKind::kDeviceToHost);
  EXPECT_EQ(record.copy.host_memory, wire::HostMemory::kPinned);  // of the side on the host
  EXPECT_EQ(record.copy.bytes, 4096u);
  copy.copy_kind = kCopyHostToDevice;
  copy.source_kind = kMemoryPageable;
  copy.target_kind = kMemoryDevice;
  take(&copy);
  EXPECT_EQ(record.copy.kind, wire::CopyKind::kHostToDevice);
  EXPECT_EQ(record.copy.host_memory, wire::HostMemory::kPageable);
  copy.copy_kind = 200;
  take(&copy);
  EXPECT_EQ(record.copy.kind, wire::CopyKind::kUnknown);
}

TEST_F(Activities, PeersAndMemsets) {
  PeerCopyActivity peer{};
  peer.kind = kMemcpyPeer;
  peer.start = 10;
  peer.end = 20;
  peer.correlation = 77;
  peer.graph = 4;
  ASSERT_EQ(take(&peer), Converted::kRecord);
  EXPECT_EQ(record.copy.kind, wire::CopyKind::kPeer);
  EXPECT_EQ(record.copy.correlation, 77u);
  EXPECT_EQ(record.copy.graph, 4u);
  MemsetActivity fill{};
  fill.kind = kMemset;
  fill.start = 10;
  fill.end = 20;
  fill.bytes = 512;
  fill.memory_kind = kMemoryDevice;
  ASSERT_EQ(take(&fill), Converted::kRecord);
  EXPECT_EQ(record.copy.kind, wire::CopyKind::kMemset);
  EXPECT_EQ(record.copy.bytes, 512u);
}

TEST_F(Activities, GraphLaunch) {
  GraphActivity graph{};
  graph.kind = kGraphTrace;
  graph.correlation = 5;
  graph.start = 100;
  graph.end = 2100;
  graph.graph = 8;
  graph.stream = 13;
  ASSERT_EQ(take(&graph), Converted::kRecord);
  EXPECT_EQ(record.kind, wire::RecordKind::kGraphLaunch);
  EXPECT_EQ(record.graph_launch.graph, 8u);
  EXPECT_EQ(record.graph_launch.end_ns, 2100u);
  EXPECT_EQ(record.graph_launch.stream, 13u);
}

TEST_F(Activities, OverheadIsACallOfItsOwnName) {
  OverheadActivity overhead{};
  overhead.kind = kOverhead;
  overhead.overhead = 1u << 16;
  overhead.start = 3;
  overhead.end = 4;
  ASSERT_EQ(take(&overhead), Converted::kRecord);
  EXPECT_EQ(record.kind, wire::RecordKind::kApi);
  EXPECT_EQ(name(record.api.name), "overhead: CUPTI buffer flush");
}

TEST_F(Activities, OtherKindsAreUnknown) {
  const Activity activity{4711};
  EXPECT_EQ(take(&activity), Converted::kUnknown);
}

}  // namespace
}  // namespace llmprof::collect::cupti
