-- title: What the processes used
-- unit: ns, bytes, counts
-- One row per process image that was read from outside. The kernel counts since the process began; an image that was
-- executed in place of another starts from that one's last numbers. Peak: the kernel's own, where it was read.
WITH image AS (
  SELECT process_id, count(*) AS readings, min(ts_ns) AS first_ns, max(ts_ns) AS last_ns, max(rss_bytes) AS rss_bytes,
    max(peak_rss_bytes) AS peak_rss_bytes, max(threads) AS most_threads,
    min(user_ns) AS user_from, max(user_ns) AS user_ns, max(system_ns) AS system_ns,
    max(minor_faults) AS minor_faults, max(major_faults) AS major_faults,
    max(read_bytes) AS read_bytes, max(written_bytes) AS written_bytes,
    max(voluntary_switches) AS voluntary_switches, max(involuntary_switches) AS involuntary_switches
  FROM process_usage
  GROUP BY process_id),
ordered AS (
  SELECT i.*, p.pid, p.executable, p.arguments, least(p.begin_ns, i.first_ns) AS begin_ns,
    greatest(coalesce(p.end_ns, i.last_ns), i.last_ns) AS end_ns,
    lag(i.process_id) OVER same AS earlier_id, lag(i.user_ns) OVER same AS earlier_user_ns
  FROM image AS i JOIN process AS p ON p.id = i.process_id
  WINDOW same AS (PARTITION BY p.pid ORDER BY i.first_ns)),
chained AS (  -- smaller numbers than before: the pid was given to a new process
  SELECT o.*, CASE WHEN o.user_from >= o.earlier_user_ns THEN o.earlier_id END AS before_id FROM ordered AS o)
SELECT c.pid, c.executable AS name, c.arguments, c.begin_ns, c.end_ns - c.begin_ns AS wall_ns, c.readings,
  c.user_ns - coalesce(b.user_ns, 0) AS user_ns, c.system_ns - coalesce(b.system_ns, 0) AS system_ns,
  greatest(coalesce(c.peak_rss_bytes, 0), c.rss_bytes) AS peak_rss_bytes,
  c.minor_faults - coalesce(b.minor_faults, 0) AS minor_faults,
  c.major_faults - coalesce(b.major_faults, 0) AS major_faults, c.most_threads,
  c.read_bytes - coalesce(b.read_bytes, 0) AS read_bytes,
  c.written_bytes - coalesce(b.written_bytes, 0) AS written_bytes,
  c.voluntary_switches - coalesce(b.voluntary_switches, 0) AS voluntary_switches,
  c.involuntary_switches - coalesce(b.involuntary_switches, 0) AS involuntary_switches
FROM chained AS c LEFT JOIN image AS b ON b.process_id = c.before_id
ORDER BY c.begin_ns, c.process_id;
