-- title: Stack samples outside of steps, for the program's life
-- unit: ns
-- One row per sample, by time.
WITH steps AS (  -- and one before all others, so that every sample has a step before it
  SELECT process_id, begin_ns, end_ns FROM step
  UNION ALL SELECT id, -9223372036854775807, -9223372036854775807 FROM process)
SELECT s.process_id, s.main::BIGINT AS main, s.ts_ns, s.weight_ns, s.truncated::BIGINT AS truncated, s.stack_id
FROM (
  SELECT a.*, t.process_id, t.tid = p.pid AS main
  FROM sample AS a JOIN thread AS t ON t.id = a.thread_id JOIN process AS p ON p.id = t.process_id) AS s
ASOF JOIN steps AS st ON s.process_id = st.process_id AND s.ts_ns > st.begin_ns
WHERE s.ts_ns > st.end_ns
ORDER BY s.ts_ns, s.id;
