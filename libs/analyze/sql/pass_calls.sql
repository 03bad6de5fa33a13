-- title: BLAS calls for the matching pass
-- unit: ns
-- Calls that executed, with their shapes. Read in blocks: the caller adds where to begin, the order and how many.
SELECT id, thread_id, begin_ns, end_ns, m, n, k, batch, layout
FROM (SELECT * FROM gemm WHERE kernel_id IS NOT NULL)
