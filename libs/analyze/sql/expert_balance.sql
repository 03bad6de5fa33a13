-- title: Tokens and time of experts
-- unit: tokens, ns
-- Modules named ….experts.N. The rows of a product are its m where the caller stores rows, else its n. An expert without
-- tokens is not called, so the mean counts all experts of the layer that were called at any time.
WITH product AS (
  SELECT a.stage, a.step_id, k.device_id, regexp_extract(a.module, '^(.*)\.experts\.[0-9]+', 1) AS layer,
    regexp_extract(a.module, '\.experts\.([0-9]+)', 1) AS expert,
    CASE WHEN g.layout = 'column' OR (g.layout IS NULL AND contains(g.library, 'cublas')) THEN g.n ELSE g.m END AS rows,
    k.end_ns - k.begin_ns AS ns
  FROM kernel AS k JOIN attribution AS a ON a.kernel_id = k.id JOIN gemm AS g ON g.id = a.gemm_id
  WHERE a.step_id IS NOT NULL AND a.gemm_call AND contains(a.module, '.experts.') AND a.stage NOT IN ('load', 'warm-up')),
known AS (SELECT layer, count(DISTINCT expert) AS experts FROM product GROUP BY layer),
called AS (SELECT stage, step_id, layer, expert, max(rows) AS rows FROM product GROUP BY ALL),
tokens AS (
  SELECT c.stage, c.step_id, c.layer, max(c.rows) AS most, sum(c.rows) / any_value(k.experts) AS mean,
    any_value(k.experts) AS experts
  FROM called AS c JOIN known AS k USING (layer) GROUP BY ALL),
on_device AS (SELECT stage, step_id, layer, device_id, sum(ns) AS ns FROM product GROUP BY ALL),
used AS (SELECT stage, count(DISTINCT device_id) AS devices FROM product GROUP BY stage),
time AS (
  SELECT d.stage, d.step_id, d.layer, max(d.ns) AS slowest, sum(d.ns) / any_value(u.devices) AS balanced, sum(d.ns) AS ns,
    any_value(u.devices) AS devices
  FROM on_device AS d JOIN used AS u USING (stage) GROUP BY ALL)
SELECT t.stage, count(DISTINCT t.layer) AS layers, max(t.experts) AS experts, count(*) AS passes,
  avg(t.most) AS most_rows, avg(t.mean) AS mean_rows, arg_max(t.layer, t.most / t.mean) AS worst_layer,
  max(t.most / t.mean) AS worst_ratio, max(x.devices) AS devices, CAST(sum(x.ns) AS DOUBLE) AS time_ns,
  CAST(sum(x.slowest) AS DOUBLE) AS slowest_ns, CAST(sum(x.balanced) AS DOUBLE) AS balanced_ns
FROM tokens AS t JOIN time AS x USING (stage, step_id, layer)
GROUP BY t.stage ORDER BY t.stage;
