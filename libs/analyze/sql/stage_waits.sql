-- title: Calls in which the host waits for a device, by the step they follow
-- unit: ns
-- A call belongs to the last step that its thread had begun; steps counts those with at least one such call.
WITH waiting AS (SELECT thread_id, begin_ns, end_ns, name FROM api WHERE waits OR contains(name, 'Synchronize'))
SELECT s.stage, w.name, count(*) AS calls, count(DISTINCT s.id) AS steps, sum(w.end_ns - w.begin_ns)::BIGINT AS time_ns
FROM waiting AS w ASOF JOIN step AS s ON w.thread_id = s.thread_id AND w.begin_ns >= s.begin_ns
GROUP BY s.stage, w.name
ORDER BY s.stage, time_ns DESC, w.name;
