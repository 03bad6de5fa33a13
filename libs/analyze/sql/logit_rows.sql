-- title: Rows of logits that the steps of each stage make
-- unit: rows
-- Per step, with its mean size. The rows are the side of the product that is not the vocabulary, the larger of the two.
SELECT w.stage, sum(least(g.m, g.n) * g.batch * w.gemm_calls) / any_value(s.steps) AS rows_per_step,
  any_value(s.batch) AS batch, any_value(s.tokens) AS tokens
FROM work_sum AS w JOIN gemm AS g ON g.id = w.gemm_id
JOIN (SELECT stage, count(*) AS steps, avg(batch) AS batch, avg(tokens) AS tokens FROM step GROUP BY stage) AS s USING (stage)
WHERE w.in_step AND w.gemm_calls > 0 AND (w.op = 'lm_head' OR w.op LIKE '%.lm_head' OR w.op = 'logits')
GROUP BY w.stage;
