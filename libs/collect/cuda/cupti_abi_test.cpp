// Our declarations of CUPTI against the real headers.

#include "collect/cuda/cupti_abi.h"

#include <cuda.h>
#include <cupti.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "collect/cuda/driver_calls.h"

namespace llmprof::collect::cupti {
namespace {

#define SAME_FIELD(ours, theirs, our_member, their_member)                      \
  static_assert(offsetof(ours, our_member) == offsetof(theirs, their_member) && \
                sizeof(ours::our_member) == sizeof(theirs::their_member))

#define KERNEL(our_member, their_member) SAME_FIELD(KernelActivity, CUpti_ActivityKernel10, our_member, their_member)
KERNEL(kind, kind);
KERNEL(registers, registersPerThread);
KERNEL(start, start);
KERNEL(end, end);
KERNEL(device, deviceId);
KERNEL(context, contextId);
KERNEL(stream, streamId);
KERNEL(grid_x, gridX);
KERNEL(grid_z, gridZ);
KERNEL(block_x, blockX);
KERNEL(block_z, blockZ);
KERNEL(static_shared, staticSharedMemory);
KERNEL(dynamic_shared, dynamicSharedMemory);
KERNEL(local_per_thread, localMemoryPerThread);
KERNEL(correlation, correlationId);
KERNEL(name, name);
KERNEL(graph_node, graphNodeId);
KERNEL(graph, graphId);
KERNEL(cluster_x, clusterX);
KERNEL(cluster_z, clusterZ);
// The oldest layout that we accept has all of it.
static_assert(offsetof(CUpti_ActivityKernel8, clusterZ) == offsetof(KernelActivity, cluster_z));
static_assert(offsetof(CUpti_ActivityKernel9, clusterZ) == offsetof(KernelActivity, cluster_z));

#define COPY(our_member, their_member) SAME_FIELD(CopyActivity, CUpti_ActivityMemcpy6, our_member, their_member)
COPY(copy_kind, copyKind);
COPY(source_kind, srcKind);
COPY(target_kind, dstKind);
COPY(bytes, bytes);
COPY(start, start);
COPY(end, end);
COPY(device, deviceId);
COPY(stream, streamId);
COPY(correlation, correlationId);
COPY(graph_node, graphNodeId);
COPY(graph, graphId);
static_assert(offsetof(CUpti_ActivityMemcpy5, graphId) == offsetof(CopyActivity, graph));

#define PEER(our_member, their_member) SAME_FIELD(PeerCopyActivity, CUpti_ActivityMemcpyPtoP4, our_member, their_member)
PEER(bytes, bytes);
PEER(start, start);
PEER(end, end);
PEER(device, deviceId);
PEER(stream, streamId);
PEER(correlation, correlationId);
PEER(graph_node, graphNodeId);
PEER(graph, graphId);

#define FILL(our_member, their_member) SAME_FIELD(MemsetActivity, CUpti_ActivityMemset4, our_member, their_member)
FILL(bytes, bytes);
FILL(start, start);
FILL(end, end);
FILL(device, deviceId);
FILL(stream, streamId);
FILL(correlation, correlationId);
FILL(memory_kind, memoryKind);
FILL(graph_node, graphNodeId);
FILL(graph, graphId);

#define GRAPH(our_member, their_member) SAME_FIELD(GraphActivity, CUpti_ActivityGraphTrace2, our_member, their_member)
GRAPH(correlation, correlationId);
GRAPH(start, start);
GRAPH(end, end);
GRAPH(device, deviceId);
GRAPH(graph, graphId);
GRAPH(context, contextId);
GRAPH(stream, streamId);
static_assert(offsetof(CUpti_ActivityGraphTrace, streamId) == offsetof(GraphActivity, stream));

SAME_FIELD(OverheadActivity, CUpti_ActivityOverhead3, overhead, overheadKind);
SAME_FIELD(OverheadActivity, CUpti_ActivityOverhead3, start, start);
SAME_FIELD(OverheadActivity, CUpti_ActivityOverhead3, end, end);

#define CALLBACK(our_member, their_member) SAME_FIELD(CallbackData, CUpti_CallbackData, our_member, their_member)
CALLBACK(site, callbackSite);
CALLBACK(function, functionName);
CALLBACK(arguments, functionParams);
CALLBACK(result, functionReturnValue);
CALLBACK(symbol, symbolName);
CALLBACK(context, context);
CALLBACK(shared, correlationData);
CALLBACK(correlation, correlationId);

SAME_FIELD(ResourceData, CUpti_ResourceData, context, context);
SAME_FIELD(ResourceData, CUpti_ResourceData, descriptor, resourceDescriptor);
SAME_FIELD(GraphData, CUpti_GraphData, graph, graph);
SAME_FIELD(GraphData, CUpti_GraphData, node, node);
SAME_FIELD(GraphData, CUpti_GraphData, original_node, originalNode);
SAME_FIELD(GraphData, CUpti_GraphData, node_type, nodeType);
SAME_FIELD(GraphData, CUpti_GraphData, executable, graphExec);
SAME_FIELD(StateData, CUpti_StateData, result, notification.result);
static_assert(sizeof(SubscriberParams) == sizeof(CUpti_SubscriberParams));
SAME_FIELD(SubscriberParams, CUpti_SubscriberParams, name, subscriberName);
SAME_FIELD(SubscriberParams, CUpti_SubscriberParams, holder, oldSubscriberName);
SAME_FIELD(SubscriberParams, CUpti_SubscriberParams, holder_bytes, oldSubscriberSize);

TEST(CuptiAbi, NumbersAreTheHeaders) {
  EXPECT_EQ(int(kHeldByAnother), int(CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED));
  EXPECT_EQ(int(kMaxLimitReached), int(CUPTI_ERROR_MAX_LIMIT_REACHED));
  EXPECT_EQ(int(kMemcpy), int(CUPTI_ACTIVITY_KIND_MEMCPY));
  EXPECT_EQ(int(kMemset), int(CUPTI_ACTIVITY_KIND_MEMSET));
  EXPECT_EQ(int(kKernel), int(CUPTI_ACTIVITY_KIND_KERNEL));
  EXPECT_EQ(int(kConcurrentKernel), int(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL));
  EXPECT_EQ(int(kOverhead), int(CUPTI_ACTIVITY_KIND_OVERHEAD));
  EXPECT_EQ(int(kMemcpyPeer), int(CUPTI_ACTIVITY_KIND_MEMCPY2));
  EXPECT_EQ(int(kGraphTrace), int(CUPTI_ACTIVITY_KIND_GRAPH_TRACE));
  EXPECT_EQ(int(kZeroedBuffers), int(CUPTI_ACTIVITY_ATTR_ZEROED_OUT_ACTIVITY_BUFFER));
  EXPECT_EQ(int(kFlushForced), int(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED));
  EXPECT_EQ(int(kDriverApi), int(CUPTI_CB_DOMAIN_DRIVER_API));
  EXPECT_EQ(int(kRuntimeApi), int(CUPTI_CB_DOMAIN_RUNTIME_API));
  EXPECT_EQ(int(kResource), int(CUPTI_CB_DOMAIN_RESOURCE));
  EXPECT_EQ(int(kState), int(CUPTI_CB_DOMAIN_STATE));
  EXPECT_EQ(int(kExit), int(CUPTI_API_EXIT));
  EXPECT_EQ(int(kContextCreated), int(CUPTI_CBID_RESOURCE_CONTEXT_CREATED));
  EXPECT_EQ(int(kStreamDestroyStarting), int(CUPTI_CBID_RESOURCE_STREAM_DESTROY_STARTING));
  EXPECT_EQ(int(kGraphNodeCreateStarting), int(CUPTI_CBID_RESOURCE_GRAPHNODE_CREATE_STARTING));
  EXPECT_EQ(int(kGraphNodeCreated), int(CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED));
  EXPECT_EQ(int(kGraphNodeCloned), int(CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED));
  EXPECT_EQ(int(kGraphExecCreateStarting), int(CUPTI_CBID_RESOURCE_GRAPHEXEC_CREATE_STARTING));
  EXPECT_EQ(int(kGraphExecCreated), int(CUPTI_CBID_RESOURCE_GRAPHEXEC_CREATED));
  EXPECT_EQ(int(kFatalError), int(CUPTI_CBID_STATE_FATAL_ERROR));
  EXPECT_EQ(int(kNodeKernel), int(CU_GRAPH_NODE_TYPE_KERNEL));
  EXPECT_EQ(int(kNodeGraph), int(CU_GRAPH_NODE_TYPE_GRAPH));
  EXPECT_EQ(int(kNodeFree), int(CU_GRAPH_NODE_TYPE_MEM_FREE));
  EXPECT_EQ(int(kNodeConditional), int(CU_GRAPH_NODE_TYPE_CONDITIONAL));
  EXPECT_EQ(int(kCopyPeerToPeer), int(CUPTI_ACTIVITY_MEMCPY_KIND_PTOP));
  EXPECT_EQ(int(kCopyDeviceToDevice), int(CUPTI_ACTIVITY_MEMCPY_KIND_DTOD));
  EXPECT_EQ(int(kMemoryManagedStatic), int(CUPTI_ACTIVITY_MEMORY_KIND_MANAGED_STATIC));
  EXPECT_EQ(int(kHolderNameBytes), CUPTI_OLD_SUBSCRIBER_NAME_MIN_LEN);
}

TEST(CuptiAbi, DriverCallsAreTheHeaders) {
  EXPECT_EQ(int(kLaunchKernel), int(CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel));
  EXPECT_EQ(kDriverCalls[CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx_ptsz].op, wire::LaunchOp::kKernel);
  EXPECT_EQ(kDriverCalls[CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch].what, CallClass::kGraphLaunch);
  EXPECT_EQ(kDriverCalls[CUPTI_DRIVER_TRACE_CBID_cuMemcpyHtoDAsync_v2].op, wire::LaunchOp::kCopy);
  EXPECT_EQ(kDriverCalls[CUPTI_DRIVER_TRACE_CBID_cuMemcpy3DBatchAsync_v2_ptsz].op, wire::LaunchOp::kCopy);
  EXPECT_EQ(kDriverCalls[CUPTI_DRIVER_TRACE_CBID_cuMemsetD2D32Async_ptsz].op, wire::LaunchOp::kMemset);
  EXPECT_EQ(kDriverCalls[CUPTI_DRIVER_TRACE_CBID_cuMemAllocAsync].memory, wire::MemoryKind::kPool);
  EXPECT_EQ(kDriverCalls[CUPTI_DRIVER_TRACE_CBID_cuMemMap].what, CallClass::kAdopt);
  EXPECT_EQ(kDriverCalls[CUPTI_DRIVER_TRACE_CBID_cuMemFreeHost].memory, wire::MemoryKind::kPinned);
  EXPECT_EQ(kDriverCalls[CUPTI_DRIVER_TRACE_CBID_cuCtxSynchronize].what, CallClass::kWaitForAll);
  EXPECT_EQ(kDriverCalls[CUPTI_DRIVER_TRACE_CBID_cuStreamSynchronize_ptsz].what, CallClass::kWaitForStream);
  EXPECT_EQ(kDriverCalls[CUPTI_DRIVER_TRACE_CBID_cuProfilerStop].what, CallClass::kProfilerStop);
  EXPECT_EQ(kDriverCalls[CUPTI_DRIVER_TRACE_CBID_cuInit].what, CallClass::kNone);
  EXPECT_EQ(kDriverCalls[1u << 20].what, CallClass::kNone);
  static_assert(CUPTI_DRIVER_TRACE_CBID_SIZE <= kDriverCallIds);
  EXPECT_EQ(int(kGraphLaunchOwnDefault), int(CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch_ptsz));
  for (const int id :
       {CUPTI_DRIVER_TRACE_CBID_cuGraphInstantiate, CUPTI_DRIVER_TRACE_CBID_cuGraphInstantiate_v2,
        CUPTI_DRIVER_TRACE_CBID_cuGraphInstantiateWithFlags, CUPTI_DRIVER_TRACE_CBID_cuGraphInstantiateWithParams,
        CUPTI_DRIVER_TRACE_CBID_cuGraphInstantiateWithParams_ptsz}) {
    EXPECT_EQ(kDriverCalls[static_cast<std::uint32_t>(id)].what, CallClass::kInstantiate);
  }
  EXPECT_EQ(kDriverCalls[CUPTI_DRIVER_TRACE_CBID_cuGraphAddKernelNode].node, NodeParameters::kFirstKernelNode);
  EXPECT_EQ(kDriverCalls[CUPTI_DRIVER_TRACE_CBID_cuGraphAddKernelNode_v2].node, NodeParameters::kKernelNode);
  EXPECT_EQ(kDriverCalls[CUPTI_DRIVER_TRACE_CBID_cuGraphAddNode].parameters, 4);
  const auto set_kernel = [](int id) {
    const DriverCall& call = kDriverCalls[static_cast<std::uint32_t>(id)];
    return call.what == CallClass::kSetKernel ? static_cast<int>(call.parameters) : -1;
  };
  EXPECT_EQ(set_kernel(CUPTI_DRIVER_TRACE_CBID_cuGraphKernelNodeSetParams), 1);
  EXPECT_EQ(set_kernel(CUPTI_DRIVER_TRACE_CBID_cuGraphKernelNodeSetParams_v2), 1);
  EXPECT_EQ(set_kernel(CUPTI_DRIVER_TRACE_CBID_cuGraphNodeSetParams), 1);
  EXPECT_EQ(set_kernel(CUPTI_DRIVER_TRACE_CBID_cuGraphExecKernelNodeSetParams), 2);
  EXPECT_EQ(set_kernel(CUPTI_DRIVER_TRACE_CBID_cuGraphExecKernelNodeSetParams_v2), 2);
  EXPECT_EQ(set_kernel(CUPTI_DRIVER_TRACE_CBID_cuGraphExecNodeSetParams), 2);
  EXPECT_EQ(kDriverCalls[CUPTI_DRIVER_TRACE_CBID_cuGraphExecUpdate].what, CallClass::kUpdate);
  EXPECT_EQ(kDriverCalls[CUPTI_DRIVER_TRACE_CBID_cuGraphExecUpdate_v2].what, CallClass::kUpdate);
  EXPECT_EQ(kDriverCalls[CUPTI_DRIVER_TRACE_CBID_cuGraphAddNode_v2].parameters, 5);
}

// Arguments are read as words of 8 bytes.
static_assert(offsetof(cuMemAlloc_v2_params, bytesize) == 8 && offsetof(cuMemAllocPitch_v2_params, Height) == 24);
static_assert(offsetof(cuMemMap_params, size) == 8 && offsetof(cuMemUnmap_params, size) == 8);
static_assert(offsetof(cuMemHostRegister_v2_params, bytesize) == 8 && offsetof(cuGraphLaunch_params, hStream) == 8);
static_assert(offsetof(cuMemAllocFromPoolAsync_params, bytesize) == 8);
// What describes a node that is added by hand, and where it names the kernel.
static_assert(offsetof(cuGraphAddKernelNode_params, nodeParams) == 32);
static_assert(offsetof(cuGraphAddKernelNode_v2_params, nodeParams) == 32);
static_assert(offsetof(cuGraphAddNode_params, nodeParams) == 32 &&
              offsetof(cuGraphAddNode_v2_params, nodeParams) == 40);
static_assert(offsetof(CUDA_KERNEL_NODE_PARAMS_v1, func) == 0 && sizeof(CUDA_KERNEL_NODE_PARAMS_v1) == 56);
static_assert(offsetof(CUDA_KERNEL_NODE_PARAMS_v2, kern) == 56 && offsetof(CUDA_KERNEL_NODE_PARAMS_v3, kern) == 56);
static_assert(offsetof(CUgraphNodeParams, type) == 0 && offsetof(CUgraphNodeParams, kernel) == 16);

}  // namespace
}  // namespace llmprof::collect::cupti
