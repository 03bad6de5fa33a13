-- title: The processes of a recorded program
-- unit: ns
-- Their lives, the time of their steps and their CPU time; the one whose life is told first: that with most time in
-- steps, else the one that was started itself, unless it did nothing but wait for another.
WITH steps AS (SELECT process_id, CAST(sum(end_ns - begin_ns) AS BIGINT) AS ns FROM step WHERE stage <> 'compile' GROUP BY 1),
used AS (
  SELECT process_id, CAST(max(user_ns + system_ns) AS BIGINT) AS ns FROM process_usage GROUP BY 1),
seen AS (
  SELECT l.*, coalesce(l.end_ns, l.last_reading_ns, (SELECT max(end_ns) FROM step WHERE step.process_id = l.process_id),
                       l.begin_ns) AS last_ns,
    coalesce(s.ns, 0) AS step_ns, coalesce(u.ns, 0) AS cpu_ns,
    row_number() OVER (ORDER BY coalesce(l.parent_pid IN (SELECT pid FROM process), false), l.begin_ns, l.process_id) = 1 AS root
  FROM process_life AS l LEFT JOIN steps AS s USING (process_id) LEFT JOIN used AS u USING (process_id))
SELECT process_id, pid, parent_pid, coalesce(executable, '') AS executable, coalesce(arguments, '') AS arguments, begin_ns,
  last_ns AS end_ns, (end_ns IS NOT NULL)::BIGINT AS ended, first_reading_ns, last_reading_ns, collector_end_ns, step_ns,
  cpu_ns, root::BIGINT AS root, (SELECT exit_status FROM process WHERE process.id = seen.process_id) AS exit_status
FROM seen
ORDER BY step_ns DESC, root AND cpu_ns * 20 >= last_ns - begin_ns DESC, cpu_ns DESC, root DESC, begin_ns, process_id;
