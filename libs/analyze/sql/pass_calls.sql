-- title: BLAS calls for the matching pass
-- unit: ns
-- Calls with a kernel of their own, with their shapes. Read in blocks: the caller adds the bounds of kernel_id and the order.
SELECT thread_id, begin_ns, end_ns, m, n, k, batch, layout
FROM gemm
