-- title: Time by module of the model
-- unit: ns
-- calls and total_ns count the ranges that stand for the module; self_ns also counts unnamed ranges inside it, and excludes
-- modules inside it. kernel_ns are the kernels launched directly in it.
SELECT stage, module, any_value(op) AS op,
  count(*) FILTER (kind = 'module') AS calls,
  coalesce(sum(total_ns) FILTER (kind = 'module'), 0)::BIGINT AS total_ns,
  sum(self_ns)::BIGINT AS self_ns, sum(kernel_ns)::BIGINT AS kernel_ns
FROM range_time
WHERE module IS NOT NULL
GROUP BY stage, module
ORDER BY self_ns DESC, stage, module;
