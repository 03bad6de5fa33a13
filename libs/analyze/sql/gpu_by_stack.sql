-- title: GPU time by call stack
-- unit: ns
-- One row per stack of the launches (of a graph: at capture), outermost function first, frames joined by ';'. The form that
-- flame graph tools read is function and time_ns.
WITH done AS (
  SELECT CASE WHEN w.in_step THEN w.stage END AS stage, coalesce(n.stack_id, w.stack_id) AS stack_id,
    sum(w.executions) AS executions, sum(w.time_ns) AS time_ns,
    coalesce(sum(w.time_ns) FILTER (w.source = 'estimated'), 0) AS estimated_ns
  FROM work_sum AS w LEFT JOIN graph_node AS n ON n.id = w.graph_node_id
  WHERE w.device_id IN (SELECT id FROM device WHERE kind <> 'cpu')
  GROUP BY ALL),
path AS (
  SELECT k.stack_id, string_agg(CASE WHEN f.line IS NULL THEN f.function ELSE f.function || ':' || f.line END, ';' ORDER BY k.depth DESC) AS function
  FROM stack AS k JOIN frame AS f ON f.id = k.frame_id
  GROUP BY k.stack_id)
SELECT d.stage, CAST(NULL AS VARCHAR) AS kind, p.function, CAST(NULL AS VARCHAR) AS file, CAST(NULL AS INTEGER) AS line,
  sum(d.executions)::BIGINT AS executions, sum(d.time_ns)::BIGINT AS time_ns, sum(d.estimated_ns)::BIGINT AS estimated_ns
FROM done AS d LEFT JOIN path AS p ON p.stack_id = d.stack_id
GROUP BY d.stage, p.function
ORDER BY time_ns DESC, d.stage, p.function;
