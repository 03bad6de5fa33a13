-- question: launch_shapes
-- How kernels were launched.
-- Of each kernel the shape (blocks, threads, registers, shared memory) that took most time; measured launches on GPUs only,
-- the 200 that took most.
WITH launched AS (
  SELECT name, device_id, grid_x, grid_y, grid_z, block_x, block_y, block_z, registers, shared_bytes, count(*) AS launches,
    sum(end_ns) - sum(begin_ns) AS ns
  FROM kernel WHERE registers IS NOT NULL AND grid_x IS NOT NULL AND block_x IS NOT NULL GROUP BY ALL),
shapes AS (
  SELECT name AS kernel, device_id, CAST(grid_x AS BIGINT) * grid_y * grid_z AS blocks,
    CAST(block_x AS BIGINT) * block_y * block_z AS threads, registers, shared_bytes, CAST(sum(launches) AS BIGINT) AS launches,
    CAST(sum(ns) AS BIGINT) AS time_ns
  FROM launched GROUP BY ALL)
SELECT s.*, d.units, coalesce(d.chip, '') AS chip FROM shapes AS s JOIN device AS d ON d.id = s.device_id
WHERE d.kind = 'gpu'
QUALIFY row_number() OVER (PARTITION BY s.kernel ORDER BY s.time_ns DESC, s.blocks DESC, s.threads DESC) = 1
ORDER BY s.time_ns DESC, s.kernel LIMIT 200;

-- question: needed_bytes
-- Bytes that counted kernels must move.
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
