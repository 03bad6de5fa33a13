-- title: The kernel that executed each BLAS call
-- unit: ids
-- For the attribution passes: calls without a kernel of their own are left out.
SELECT kernel_id, id AS gemm_id
FROM gemm
WHERE kernel_id IS NOT NULL
ORDER BY kernel_id;
