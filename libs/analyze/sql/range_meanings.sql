-- title: How the names of ranges were understood
-- unit: ns
SELECT name, coalesce(domain, '') AS domain, coalesce(kind, '') AS kind, coalesce(stage, '') AS stage,
  coalesce(why, '') AS why, ranges, total_ns
FROM range_meaning
ORDER BY total_ns DESC, name, domain, kind, stage;
