-- title: Attention by shape
-- unit: ns
-- One row per stage and shape, the costliest first. time_ns: of the kernels that the operator launched itself.
WITH executed AS (
  SELECT k.op_id, sum(k.end_ns - k.begin_ns) AS ns, any_value(a.stage) FILTER (a.step_id IS NOT NULL) AS stage
  FROM kernel AS k LEFT JOIN attribution AS a ON a.kernel_id = k.id
  WHERE k.op_id IN (SELECT op_id FROM attention)
  GROUP BY k.op_id)
SELECT e.stage, t.function, t.type, t.batch, t.heads, t.kv_heads, t.queries, t.keys, t.head_size,
  coalesce(t.value_size, t.head_size) AS value_size, t.causal, count(*) AS calls, coalesce(sum(e.ns), 0)::BIGINT AS time_ns
FROM attention AS t LEFT JOIN executed AS e ON e.op_id = t.op_id
GROUP BY ALL
ORDER BY time_ns DESC, stage, function, batch, queries, keys, heads, head_size;
