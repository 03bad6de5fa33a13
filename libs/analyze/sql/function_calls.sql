-- title: Calls of functions that were counted otherwise
-- unit: calls
-- BLAS calls by function and ranges by name, where a sampled function has that name. A function that is both counts its
-- BLAS calls.
WITH names AS (SELECT DISTINCT function FROM frame),
counted AS (
  SELECT a.stage, g.function, 0 AS rank, count(*) AS calls
  FROM gemm AS g LEFT JOIN attribution AS a ON a.kernel_id = g.kernel_id
  WHERE g.function IN (SELECT function FROM names)
  GROUP BY ALL
  UNION ALL
  SELECT t.stage, r.name, 1 AS rank, count(*) AS calls
  FROM range AS r JOIN range_time AS t ON t.range_id = r.id
  WHERE r.name IN (SELECT function FROM names)
  GROUP BY ALL)
SELECT stage, function, arg_min(calls, rank)::BIGINT AS calls
FROM counted
GROUP BY stage, function
ORDER BY function, stage;
