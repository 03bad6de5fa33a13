-- title: GPU time by block of the model
-- unit: ns
-- Blocks as in blocks.sql, by the kernels of their modules: calls are kernels, total_ns their durations, estimates included.
WITH placed AS (
  SELECT regexp_extract(module, '^(([^.]*[^.0-9][^.]*\.)+[0-9]+|[^.]+)') AS module, stage, executions, time_ns
  FROM work_sum
  WHERE module IS NOT NULL AND stage IS NOT NULL AND device_id IN (SELECT id FROM device WHERE kind <> 'cpu'))
SELECT module, stage, sum(executions)::BIGINT AS calls, sum(time_ns)::BIGINT AS total_ns,
  regexp_matches(module, '\.[0-9]+$') AS layer
FROM placed
GROUP BY module, stage
ORDER BY length(module), module, stage;
