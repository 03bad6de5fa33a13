-- title: Bytes that counted kernels must move
-- unit: bytes
-- Operands and results, each once, of the matrix products behind kernels with hardware counters, where these are known.
WITH counted AS (SELECT DISTINCT scope_id FROM counter WHERE scope = 'kernel'),
product AS (
  SELECT k.id, k.name AS kernel, g.m, g.n, g.k, g.batch, list_transform([g.type_a, g.type_b, g.type_c], t ->
    CASE WHEN contains(t, '64') THEN 8 WHEN contains(t, '32') THEN 4 WHEN contains(t, '16') THEN 2 WHEN contains(t, '8') THEN 1 END) AS width
  FROM counted AS c JOIN kernel AS k ON k.id = c.scope_id LEFT JOIN gemm_group AS named ON named.gemm_id = k.gemm_id
  LEFT JOIN gemm_group AS p ON p.call_id = named.call_id JOIN gemm AS g ON g.id = coalesce(p.gemm_id, k.gemm_id))
SELECT kernel, count(DISTINCT id) AS launches,
  CAST(sum(batch * (m * k * width[1] + k * n * width[2] + m * n * width[3])) AS DOUBLE) AS bytes
FROM product WHERE width[1] IS NOT NULL AND width[2] IS NOT NULL AND width[3] IS NOT NULL GROUP BY kernel;
