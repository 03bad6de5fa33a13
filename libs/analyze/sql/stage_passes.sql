-- title: What the passes of each stage must cost
-- unit: FLOP, bytes
-- One row per stage and kind of pass; flops and bytes are of one pass, NULL for steps whose cost is unknown.
WITH cost AS (
  SELECT pass_id, sum(flops) AS flops, sum(weight_bytes + kv_bytes + activation_bytes) AS bytes
  FROM model_op
  GROUP BY pass_id)
SELECT s.stage, s.pass_id, count(*) AS steps, any_value(c.flops) AS flops, any_value(c.bytes) AS bytes
FROM step AS s LEFT JOIN cost AS c ON c.pass_id = s.pass_id
GROUP BY s.stage, s.pass_id
ORDER BY s.stage, s.pass_id;
