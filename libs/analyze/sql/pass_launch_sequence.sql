-- title: What each thread launched, in order
-- unit: ns
-- For telling steps from repetition: kernels by name and graphs by the nodes they were captured from. Where graphs did most
-- of a thread's work, they alone are looked at: what is launched between them varies. At most two million launches.
WITH graph_work AS (
  SELECT thread_id, 'graph ' || graph AS symbol, coalesce(launch_begin_ns, begin_ns) AS begin_ns, end_ns,
    end_ns - begin_ns AS device_ns
  FROM graph_launch),
kernel_work AS (
  SELECT thread_id, name AS symbol, coalesce(launch_begin_ns, begin_ns) AS begin_ns, end_ns, end_ns - begin_ns AS device_ns
  FROM kernel WHERE graph_launch_id IS NULL),
graph_share AS (
  SELECT thread_id, sum(device_ns) FILTER (is_graph) / sum(device_ns) AS share
  FROM (SELECT thread_id, device_ns, true AS is_graph FROM graph_work
        UNION ALL SELECT thread_id, device_ns, false FROM kernel_work)
  GROUP BY thread_id)
SELECT thread_id, symbol, begin_ns, end_ns, device_ns
FROM (SELECT * FROM graph_work
      UNION ALL
      SELECT k.* FROM kernel_work AS k JOIN graph_share AS s ON s.thread_id = k.thread_id WHERE coalesce(s.share, 0) < 0.5)
ORDER BY begin_ns
LIMIT 2000000;
