-- title: Waits of main threads for a device
-- unit: ns
-- Those of a millisecond or more: shorter ones are between other things.
SELECT t.process_id, a.begin_ns, a.end_ns
FROM api AS a JOIN thread AS t ON t.id = a.thread_id JOIN process AS p ON p.id = t.process_id
WHERE a.waits AND t.tid = p.pid AND a.end_ns - a.begin_ns >= 1000000
ORDER BY a.begin_ns;
