-- title: BLAS calls for the matching pass
-- unit: ns
-- Calls that executed, with their shapes. transposed: A 1, B 2. Read in blocks: the caller adds where to begin, the order and how many.
SELECT id, thread_id, begin_ns, end_ns, m, n, k, batch, layout,
  CAST(transpose_a <> 'n' AS BIGINT) + 2 * CAST(transpose_b <> 'n' AS BIGINT) AS transposed
FROM (SELECT * FROM gemm WHERE kernel_id IS NOT NULL)
