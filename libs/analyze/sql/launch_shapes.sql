-- title: How kernels were launched
-- unit: ns
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
