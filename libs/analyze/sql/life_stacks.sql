-- title: Stacks of samples outside of steps
-- unit: frames
-- By stack, the innermost frame first.
WITH steps AS (
  SELECT process_id, begin_ns, end_ns FROM step
  UNION ALL SELECT id, -9223372036854775807, -9223372036854775807 FROM process),
outside AS (
  SELECT DISTINCT s.stack_id
  FROM (SELECT a.stack_id, a.ts_ns, t.process_id FROM sample AS a JOIN thread AS t ON t.id = a.thread_id) AS s
  ASOF JOIN steps AS st ON s.process_id = st.process_id AND s.ts_ns > st.begin_ns
  WHERE s.ts_ns > st.end_ns)
SELECT k.stack_id, k.frame_id FROM stack AS k JOIN outside USING (stack_id) ORDER BY k.stack_id, k.depth;
