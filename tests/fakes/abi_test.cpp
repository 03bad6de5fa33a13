// The fakes' reading of CUDA's and CUPTI's interfaces against the headers themselves. Nothing runs: it compiles or not.
#include "abi.h"

#if __has_include(<cupti.h>)
#include <cupti.h>

#include <cstddef>

#define SAME(ours, field, theirs, member)                                  \
  static_assert(offsetof(fake::ours, field) == offsetof(theirs, member) && \
                sizeof(fake::ours::field) >= sizeof(theirs::member))
#define SAME_VALUE(ours, theirs) static_assert(static_cast<int>(fake::ours) == static_cast<int>(theirs))
#define SAME_SIZE(ours, theirs) static_assert(sizeof(fake::ours) == sizeof(theirs))

SAME_SIZE(KernelActivity, CUpti_ActivityKernel10);
SAME(KernelActivity, registers, CUpti_ActivityKernel10, registersPerThread);
SAME(KernelActivity, start, CUpti_ActivityKernel10, start);
SAME(KernelActivity, grid, CUpti_ActivityKernel10, gridX);
SAME(KernelActivity, block, CUpti_ActivityKernel10, blockX);
SAME(KernelActivity, correlation, CUpti_ActivityKernel10, correlationId);
SAME(KernelActivity, name, CUpti_ActivityKernel10, name);
SAME(KernelActivity, graph_node, CUpti_ActivityKernel10, graphNodeId);
SAME(KernelActivity, graph, CUpti_ActivityKernel10, graphId);
SAME(KernelActivity, cluster, CUpti_ActivityKernel10, clusterX);
SAME(KernelActivity, device_launched, CUpti_ActivityKernel10, isDeviceLaunched);
SAME_SIZE(MemcpyActivity, CUpti_ActivityMemcpy6);
SAME(MemcpyActivity, copy_kind, CUpti_ActivityMemcpy6, copyKind);
SAME(MemcpyActivity, bytes, CUpti_ActivityMemcpy6, bytes);
SAME(MemcpyActivity, correlation, CUpti_ActivityMemcpy6, correlationId);
SAME(MemcpyActivity, graph_node, CUpti_ActivityMemcpy6, graphNodeId);
SAME(MemcpyActivity, graph, CUpti_ActivityMemcpy6, graphId);
SAME(MemcpyActivity, copy_count, CUpti_ActivityMemcpy6, copyCount);
SAME_SIZE(MemsetActivity, CUpti_ActivityMemset4);
SAME(MemsetActivity, start, CUpti_ActivityMemset4, start);
SAME(MemsetActivity, correlation, CUpti_ActivityMemset4, correlationId);
SAME(MemsetActivity, graph_node, CUpti_ActivityMemset4, graphNodeId);
SAME_SIZE(GraphTraceActivity, CUpti_ActivityGraphTrace2);
SAME(GraphTraceActivity, graph, CUpti_ActivityGraphTrace2, graphId);
SAME(GraphTraceActivity, stream, CUpti_ActivityGraphTrace2, streamId);
SAME_SIZE(MemoryActivity, CUpti_ActivityMemory4);
SAME(MemoryActivity, address, CUpti_ActivityMemory4, address);
SAME(MemoryActivity, name, CUpti_ActivityMemory4, name);
SAME_SIZE(ApiActivity, CUpti_ActivityAPI);
SAME_SIZE(SynchronizationActivity, CUpti_ActivitySynchronization2);
SAME(SynchronizationActivity, correlation, CUpti_ActivitySynchronization2, correlationId);
SAME_SIZE(CallbackData, CUpti_CallbackData);
SAME(CallbackData, symbol_name, CUpti_CallbackData, symbolName);
SAME(CallbackData, correlation_id, CUpti_CallbackData, correlationId);
SAME_SIZE(ResourceData, CUpti_ResourceData);
SAME(ResourceData, descriptor, CUpti_ResourceData, resourceDescriptor);
SAME_SIZE(GraphData, CUpti_GraphData);
SAME(GraphData, node_type, CUpti_GraphData, nodeType);
SAME(GraphData, exec, CUpti_GraphData, graphExec);
SAME_SIZE(SubscriberParams, CUpti_SubscriberParams);
SAME_SIZE(LaunchConfig, CUlaunchConfig);
SAME(LaunchConfig, stream, CUlaunchConfig, hStream);
SAME_SIZE(LaunchKernelParams, cuLaunchKernel_params);
SAME(LaunchKernelParams, stream, cuLaunchKernel_params, hStream);
SAME_SIZE(LaunchKernelExParams, cuLaunchKernelEx_params);
SAME_SIZE(GraphLaunchParams, cuGraphLaunch_params);
SAME_SIZE(KernelNodeParams, CUDA_KERNEL_NODE_PARAMS_v2);
SAME_SIZE(KernelNodeParams, CUDA_KERNEL_NODE_PARAMS_v3);
SAME(KernelNodeParams, kernel, CUDA_KERNEL_NODE_PARAMS_v2, kern);
SAME_SIZE(NodeParams, CUgraphNodeParams);
SAME(NodeParams, kernel, CUgraphNodeParams, kernel);
SAME_SIZE(ConditionalNodeParams, CUDA_CONDITIONAL_NODE_PARAMS);
SAME(ConditionalNodeParams, bodies, CUDA_CONDITIONAL_NODE_PARAMS, phGraph_out);
SAME_SIZE(AddKernelNodeParams, cuGraphAddKernelNode_v2_params);
SAME(AddKernelNodeParams, parameters, cuGraphAddKernelNode_v2_params, nodeParams);
SAME_SIZE(AddNodeParams, cuGraphAddNode_v2_params);
SAME(AddNodeParams, parameters, cuGraphAddNode_v2_params, nodeParams);
SAME_SIZE(SetKernelNodeParams, cuGraphExecKernelNodeSetParams_v2_params);
SAME(SetKernelNodeParams, parameters, cuGraphExecKernelNodeSetParams_v2_params, nodeParams);
SAME_SIZE(UpdateParams, cuGraphExecUpdate_v2_params);
SAME_SIZE(CopyToDeviceParams, cuMemcpyHtoDAsync_v2_params);
SAME_SIZE(MemsetParams, cuMemsetD8Async_params);
SAME_VALUE(kGraphTrace, CUPTI_ACTIVITY_KIND_GRAPH_TRACE);
SAME_VALUE(kMemory2, CUPTI_ACTIVITY_KIND_MEMORY2);
static_assert(static_cast<int>(fake::kUnheardOf) >= static_cast<int>(CUPTI_ACTIVITY_KIND_COUNT));
SAME_VALUE(kNodeCloned, CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED);
SAME_VALUE(kExecCreated, CUPTI_CBID_RESOURCE_GRAPHEXEC_CREATED);
SAME_VALUE(kCuLaunchKernelEx, CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx);
SAME_VALUE(kCuGraphUpload, CUPTI_DRIVER_TRACE_CBID_cuGraphUpload);
SAME_VALUE(kCuGraphInstantiateWithFlags, CUPTI_DRIVER_TRACE_CBID_cuGraphInstantiateWithFlags);
SAME_VALUE(kCuGraphAddKernelNode_v2, CUPTI_DRIVER_TRACE_CBID_cuGraphAddKernelNode_v2);
SAME_VALUE(kCuGraphAddNode_v2, CUPTI_DRIVER_TRACE_CBID_cuGraphAddNode_v2);
SAME_VALUE(kCuGraphExecKernelNodeSetParams_v2, CUPTI_DRIVER_TRACE_CBID_cuGraphExecKernelNodeSetParams_v2);
SAME_VALUE(kCuGraphExecUpdate_v2, CUPTI_DRIVER_TRACE_CBID_cuGraphExecUpdate_v2);
#endif

int main() { return 0; }
