-- title: What the operators of each kind of pass must cost
-- unit: FLOP, bytes
-- One row per pass, operator and cost; layers: how many of them cost that each. in_layer: it belongs to a numbered layer.
SELECT pass_id, op, module <> op AS in_layer, flops, weight_bytes + kv_bytes + activation_bytes AS bytes,
  count(*) AS layers, compute_ns
FROM model_op
GROUP BY ALL
ORDER BY pass_id, op, flops, bytes;
