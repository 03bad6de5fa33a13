-- title: Kernels for the attribution passes
-- unit: ns
-- Read in slices of time: the caller adds the bounds of begin_ns.
SELECT begin_ns, end_ns, thread_id, launch_begin_ns, device_id, id, gemm_id, graph_node_id
FROM kernel
