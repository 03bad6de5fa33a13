-- title: Time that was not recorded
-- unit: ns
-- One row per stage and reason: how much of its steps' windows lies in such gaps, of all processes. The stage NULL: of the run.
SELECT CAST(NULL AS VARCHAR) AS stage, why, count(*) AS gaps, sum(end_ns - begin_ns)::BIGINT AS time_ns
FROM gap
GROUP BY why
UNION ALL
SELECT s.stage, g.why, count(DISTINCT g.begin_ns) AS gaps,
  sum(least(g.end_ns, s.end_ns) - greatest(g.begin_ns, s.begin_ns))::BIGINT AS time_ns
FROM gap AS g JOIN step AS s ON s.process_id = g.process_id AND s.begin_ns < g.end_ns AND s.end_ns > g.begin_ns
GROUP BY s.stage, g.why
ORDER BY stage NULLS FIRST, why;
