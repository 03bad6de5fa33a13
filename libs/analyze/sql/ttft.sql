-- title: Time to the first token
-- unit: ns
-- Begin to end of prefill steps; their sampling is inside. Quantiles are exact and observed (quantile_disc), over the steps in
-- which the program does not warm up; cold_ttft_ns is the first of the others.
SELECT coalesce(quantile_disc(end_ns - begin_ns, 0.5) FILTER (NOT warm_up), min(end_ns - begin_ns)) AS ttft_ns,
  quantile_disc(end_ns - begin_ns, 0.9) FILTER (NOT warm_up) AS ttft_p90_ns,
  quantile_disc(end_ns - begin_ns, 0.99) FILTER (NOT warm_up) AS ttft_p99_ns,
  count(*) FILTER (NOT warm_up) AS prefills,
  arg_min(end_ns - begin_ns, begin_ns) FILTER (warm_up) AS cold_ttft_ns
FROM step
WHERE stage = 'prefill'
HAVING count(*) > 0;
