-- question: gemm_sizes
-- Calls of matrix products by shape.
-- For recognising the model: products with weights are not batched.
SELECT m, n, k, type_a AS type, layout, count(*) AS calls
FROM gemm
WHERE batch = 1
GROUP BY m, n, k, type_a, layout
ORDER BY calls DESC, m, n, k, type_a, layout;

-- question: model_mark
-- The model the program declared.
-- The text of the last mark of category model in the domain llmprof.
SELECT name AS model
FROM range
WHERE domain = 'llmprof' AND category = 'model' AND kind = 'mark'
ORDER BY begin_ns DESC, id DESC
LIMIT 1;
