-- title: Processes and the devices that execute for them
-- unit: ns
-- One row per process and device; kernel_ns: durations of kernels, of graph launches without recorded nodes as a whole.
WITH work AS (
  SELECT device_id, thread_id, sum(end_ns - begin_ns) AS ns FROM kernel GROUP BY ALL
  UNION ALL
  SELECT device_id, thread_id, sum(end_ns - begin_ns) AS ns FROM graph_launch WHERE NOT coalesce(nodes_recorded, false) GROUP BY ALL)
SELECT p.id AS process_id, p.pid, p.host, p.rank, w.device_id, sum(w.ns)::BIGINT AS kernel_ns
FROM work AS w JOIN thread AS t ON t.id = w.thread_id JOIN process AS p ON p.id = t.process_id
GROUP BY ALL
ORDER BY p.rank NULLS LAST, w.device_id, p.id;
