-- title: What was lost or not seen
-- unit: per row
-- The loss ledger, the same kind of loss in several processes added up, worst first.
SELECT name, severity, sum(count)::BIGINT AS count, unit, meaning, remedy, string_agg(DISTINCT detail, ', ' ORDER BY detail) AS detail
FROM loss
GROUP BY name, severity, unit, meaning, remedy
ORDER BY CASE severity WHEN 'data_loss' THEN 0 WHEN 'degraded' THEN 1 ELSE 2 END, name;
