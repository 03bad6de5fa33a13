-- title: The kernels behind the matrix products of each stage
-- unit: ns
-- One row per stage, shape, type and kernel, the costliest first; calls that an estimate stands for included. Groups of one
-- call share the time of its kernel by FLOPs. blocks, threads,
-- registers and shared memory are those of a measured launch; 0 if there is none.
WITH measured AS (
  SELECT gemm_id, name, max(grid_x::BIGINT * grid_y * grid_z) AS blocks, max(block_x * block_y * block_z) AS threads,
    max(registers) AS registers, max(shared_bytes) AS shared_bytes
  FROM kernel
  WHERE gemm_id IS NOT NULL AND stream IS NOT NULL
  GROUP BY gemm_id, name),
launched AS (
  SELECT g.m, g.n, g.k, g.batch, k.name, max(k.blocks) AS blocks, max(k.threads) AS threads, max(k.registers) AS registers,
    max(k.shared_bytes) AS shared_bytes
  FROM measured AS k JOIN gemm AS g ON g.id = k.gemm_id
  GROUP BY ALL),
done AS (
  SELECT w.stage, g.m, g.n, g.k, g.batch, g.type_a AS type, g.compute_type, w.name, sum(w.executions)::BIGINT AS executions,
    sum(w.time_ns)::BIGINT AS time_ns
  FROM work_product AS w JOIN gemm AS g ON g.id = w.gemm_id
  WHERE w.in_step
  GROUP BY ALL)
SELECT d.stage, d.m, d.n, d.k, d.batch, d.type, d.compute_type, d.name AS kernel, d.executions, d.time_ns,
  coalesce(l.blocks, 0) AS blocks, coalesce(l.threads, 0) AS threads, coalesce(l.registers, 0) AS registers,
  coalesce(l.shared_bytes, 0) AS shared_bytes
FROM done AS d LEFT JOIN launched AS l
  ON l.m = d.m AND l.n = d.n AND l.k = d.k AND l.batch = d.batch AND l.name = d.name
ORDER BY d.time_ns DESC, d.stage, d.m, d.n, d.k, d.name
LIMIT 400;
