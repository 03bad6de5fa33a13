-- title: GPU time by line of source code
-- unit: ns
-- The innermost Python line on the stack of each launch; where there is none, the innermost frame. Of a graph: the stack at
-- capture. estimated_ns: of time_ns, in graph launches that were not recorded node by node.
WITH done AS (
  SELECT CASE WHEN w.in_step THEN w.stage END AS stage, coalesce(n.stack_id, w.stack_id) AS stack_id,
    sum(w.executions) AS executions, sum(w.time_ns) AS time_ns,
    coalesce(sum(w.time_ns) FILTER (w.source = 'estimated'), 0) AS estimated_ns
  FROM work_sum AS w LEFT JOIN graph_node AS n ON n.id = w.graph_node_id
  WHERE w.device_id IN (SELECT id FROM device WHERE kind <> 'cpu')
  GROUP BY ALL),
innermost AS (
  SELECT k.stack_id, arg_min(f.id, k.depth + CASE WHEN f.kind = 'python' THEN 0 ELSE 1000000 END) AS frame_id
  FROM stack AS k JOIN frame AS f ON f.id = k.frame_id
  GROUP BY k.stack_id)
SELECT d.stage, f.kind, f.function, f.file, f.line, sum(d.executions)::BIGINT AS executions,
  sum(d.time_ns)::BIGINT AS time_ns, sum(d.estimated_ns)::BIGINT AS estimated_ns
FROM done AS d LEFT JOIN innermost AS i ON i.stack_id = d.stack_id LEFT JOIN frame AS f ON f.id = i.frame_id
GROUP BY ALL
ORDER BY time_ns DESC, d.stage, f.file, f.line, f.function;
