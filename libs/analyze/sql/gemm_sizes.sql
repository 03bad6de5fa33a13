-- title: Calls of matrix products by shape
-- unit: calls
-- For recognising the model: products with weights are not batched.
SELECT m, n, k, type_a AS type, layout, count(*) AS calls
FROM gemm
WHERE batch = 1
GROUP BY m, n, k, type_a, layout
ORDER BY calls DESC, m, n, k, type_a, layout;
