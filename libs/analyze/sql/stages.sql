-- title: Stages and their steps
-- unit: ns, tokens
-- Quantiles are exact and observed: quantile_disc gives the smallest duration that at least that share of the steps does
-- not exceed. A step lasts from its turn to its end; a prefill step from its begin, as somebody waits for it. Tokens are new tokens over all sequences; a step that does not say its size has none.
SELECT stage, count(*) AS steps, sum(kernels)::BIGINT AS kernels,
  coalesce(sum(batch * tokens), 0)::BIGINT AS tokens,
  CASE WHEN count(*) = count(*) FILTER (source = 'declared') THEN 'declared' ELSE 'inferred' END AS source,
  min(confidence) AS confidence,
  quantile_disc(lasted_ns, 0.5) AS step_p50_ns,
  quantile_disc(lasted_ns, 0.9) AS step_p90_ns,
  quantile_disc(lasted_ns, 0.99) AS step_p99_ns
FROM (SELECT *, greatest(end_ns - CASE WHEN stage = 'prefill' THEN begin_ns ELSE turn_ns END, 0) AS lasted_ns FROM step)
GROUP BY stage
ORDER BY min(begin_ns);
