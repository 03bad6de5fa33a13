-- title: Steps of each thread in order, by whether they make tokens
-- unit: ns
-- kind: 0 decode, 1 mixed, 2 prefill, 3 another stage.
SELECT thread_id, begin_ns, end_ns, coalesce(batch, 0) AS batch, coalesce(context, 0) AS context,
  CAST(CASE stage WHEN 'decode' THEN 0 WHEN 'mixed' THEN 1 WHEN 'prefill' THEN 2 ELSE 3 END AS BIGINT) AS kind
FROM step ORDER BY thread_id, begin_ns;
