-- title: What the operators of each stage must move and compute
-- unit: bytes, FLOP
-- One row per stage and operator, over all steps whose size is known.
SELECT s.stage, o.op, sum(s.steps * o.flops) AS flops, sum(s.steps * o.weight_bytes) AS weight_bytes,
  sum(s.steps * o.kv_bytes) AS kv_bytes, sum(s.steps * o.activation_bytes) AS activation_bytes
FROM (SELECT stage, pass_id, count(*) AS steps FROM step WHERE pass_id IS NOT NULL GROUP BY ALL) AS s
JOIN model_op AS o ON o.pass_id = s.pass_id
GROUP BY s.stage, o.op
ORDER BY s.stage, o.op;
