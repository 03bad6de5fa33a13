-- title: Kernels for the attribution passes, with what is added up
-- unit: ns
-- As pass_kernels, and what the sums over kernels that are alike need besides.
SELECT begin_ns, end_ns, thread_id, launch_begin_ns, device_id, id, gemm_id, graph_node_id, launch_end_ns, stream,
  graph_launch_id, stack_id, name, CAST(coalesce(estimated, false) AS BIGINT) AS estimated
FROM kernel
