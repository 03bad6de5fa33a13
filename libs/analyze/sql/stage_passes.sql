-- title: What the passes of each stage must cost
-- unit: FLOP, bytes
-- One row per stage and kind of pass; flops and bytes are of one pass, NULL for steps whose cost is unknown. They are at
-- least that much, with recomputed_flops beside them; flops_most and bytes_most at most, NULL where nothing bounds them.
-- compute_ns: of flops on one device, each type of arithmetic at its own peak; NULL where a peak is unknown.
WITH cost AS (
  SELECT pass_id, sum(flops) AS flops, sum(recomputed_flops) AS recomputed_flops, sum(weight_bytes + kv_bytes + activation_bytes) AS bytes,
    CASE WHEN count(compute_ns) = count(*) THEN sum(compute_ns) END AS compute_ns,
    CASE WHEN count(flops_most) = count(*) THEN sum(flops_most) END AS flops_most,
    CASE WHEN count(most_bytes) = count(*) THEN sum(most_bytes) END AS bytes_most
  FROM model_op
  GROUP BY pass_id)
SELECT s.stage, s.pass_id, count(*) AS steps, any_value(c.flops) AS flops, any_value(c.bytes) AS bytes,
  any_value(c.recomputed_flops) AS recomputed_flops,
  any_value(c.flops_most) AS flops_most, any_value(c.bytes_most) AS bytes_most, any_value(c.compute_ns) AS compute_ns
FROM step AS s LEFT JOIN cost AS c ON c.pass_id = s.pass_id
GROUP BY s.stage, s.pass_id
ORDER BY s.stage, s.pass_id;
