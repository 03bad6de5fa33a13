-- title: Functions by stage, from CPU stack samples
-- unit: ns
-- self_ns: CPU time in the function itself; total_ns: with what it called, counted once per sample however often the
-- function stands on its stack. sampled_ns: CPU time sampled in the stage. stage is NULL outside any stage.
WITH weighted AS (
  SELECT s.stack_id, p.stage, count(*) AS samples, sum(s.weight_ns) AS ns
  FROM sample AS s LEFT JOIN sample_place AS p ON p.sample_id = s.id
  GROUP BY ALL),
sampled AS (SELECT stage, sum(ns) AS ns FROM weighted GROUP BY stage),
on_stack AS (
  SELECT k.stack_id, f.kind, f.function, f.file, min(k.depth) AS depth
  FROM stack AS k JOIN frame AS f ON f.id = k.frame_id
  GROUP BY ALL)
SELECT w.stage, o.kind, o.function AS name, o.file, sum(w.samples)::BIGINT AS samples,
  coalesce(sum(w.ns) FILTER (o.depth = 0), 0)::BIGINT AS self_ns, sum(w.ns)::BIGINT AS total_ns,
  any_value(t.ns)::BIGINT AS sampled_ns
FROM weighted AS w
  JOIN on_stack AS o ON o.stack_id = w.stack_id
  JOIN sampled AS t ON t.stage IS NOT DISTINCT FROM w.stage
GROUP BY w.stage, o.kind, o.function, o.file
ORDER BY self_ns DESC, total_ns DESC, w.stage, o.function, o.file, o.kind;
