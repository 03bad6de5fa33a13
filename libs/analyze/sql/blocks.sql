-- title: Time by block of the model
-- unit: ns
-- Blocks are the layers (paths that end in their first number: h.3, layers.3) and the parts outside of them (paths without a
-- dot: wte, lm_head). What is inside a block counts. In the order of their first call.
WITH called AS (
  SELECT module, stage, sum(ranges)::BIGINT AS calls, sum(total_ns)::BIGINT AS total_ns, min(first_range) AS first_range
  FROM range_sum
  WHERE kind = 'module' AND stage IS NOT NULL
  GROUP BY module, stage)
SELECT module, stage, calls, total_ns, regexp_matches(module, '\.[0-9]+$') AS layer
FROM called
WHERE regexp_full_match(module, '[^.]+|([^.]*[^.0-9][^.]*\.)+[0-9]+')
ORDER BY min(first_range) OVER (PARTITION BY module), module, first_range;
