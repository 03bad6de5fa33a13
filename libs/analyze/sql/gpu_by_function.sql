-- title: GPU time by function
-- unit: ns
-- Of everything launched while the function was on the stack, counted once per launch however often it stands there. Of a graph:
-- the stack at capture. self_ns: it was the innermost Python function. stage is NULL outside any step.
WITH done AS (
  SELECT CASE WHEN w.in_step THEN w.stage END AS stage, coalesce(n.stack_id, w.stack_id) AS stack_id,
    sum(w.executions) AS executions, sum(w.time_ns) AS time_ns,
    coalesce(sum(w.time_ns) FILTER (w.source = 'estimated'), 0) AS estimated_ns
  FROM work_sum AS w LEFT JOIN graph_node AS n ON n.id = w.graph_node_id
  WHERE w.device_id IN (SELECT id FROM device WHERE kind <> 'cpu')
  GROUP BY ALL),
named AS (
  SELECT k.stack_id, f.kind, f.function, f.file, min(k.depth) AS depth
  FROM stack AS k JOIN frame AS f ON f.id = k.frame_id
  GROUP BY ALL),
innermost AS (
  SELECT stack_id, min(depth) FILTER (kind = 'python') AS python_depth, min(depth) AS depth FROM named GROUP BY stack_id)
SELECT d.stage, n.kind, n.function, n.file, CAST(NULL AS INTEGER) AS line, sum(d.executions)::BIGINT AS executions,
  sum(d.time_ns)::BIGINT AS time_ns, sum(d.estimated_ns)::BIGINT AS estimated_ns,
  coalesce(sum(d.time_ns) FILTER (n.depth = coalesce(i.python_depth, i.depth)), 0)::BIGINT AS self_ns
FROM done AS d JOIN named AS n ON n.stack_id = d.stack_id JOIN innermost AS i ON i.stack_id = d.stack_id
GROUP BY d.stage, n.kind, n.function, n.file
ORDER BY time_ns DESC, d.stage, n.file, n.function, n.kind;
