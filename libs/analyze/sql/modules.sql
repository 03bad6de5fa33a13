-- title: Time by module of the model
-- unit: ns
-- Of modules that ranges name: calls and total_ns count the ranges that stand for the module; self_ns also counts unnamed
-- ranges inside it, and excludes modules inside it; kernel_ns are the kernels launched directly in it. Of modules told from
-- shapes: calls are steps, and the time of one is from the begin of its first BLAS call to the end of its last.
WITH spans AS (
  SELECT a.step_id, a.stage, a.module, a.op, max(k.end_ns) - min(k.begin_ns) AS ns, sum(k.end_ns - k.begin_ns) AS kernel_ns
  FROM attribution AS a JOIN kernel AS k ON k.id = a.kernel_id
  WHERE a.module_source = 'shape'
  GROUP BY a.step_id, a.stage, a.module, a.op)
SELECT stage, module, any_value(op) AS op, 'range' AS source,
  count(*) FILTER (kind = 'module') AS calls,
  coalesce(sum(total_ns) FILTER (kind = 'module'), 0)::BIGINT AS total_ns,
  sum(self_ns)::BIGINT AS self_ns, sum(kernel_ns)::BIGINT AS kernel_ns
FROM range_time
WHERE module IS NOT NULL
GROUP BY stage, module
UNION ALL
SELECT stage, module, any_value(op) AS op, 'shape' AS source, count(*) AS calls, sum(ns)::BIGINT AS total_ns,
  sum(ns)::BIGINT AS self_ns, sum(kernel_ns)::BIGINT AS kernel_ns
FROM spans
GROUP BY stage, module
ORDER BY self_ns DESC, stage, module;
