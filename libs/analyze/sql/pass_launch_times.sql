-- title: Launches of graphs, for steps told from shapes
-- unit: ns
-- From the launching call to the end on the device.
SELECT graph, thread_id, coalesce(launch_begin_ns, begin_ns) AS begin_ns, end_ns
FROM graph_launch
ORDER BY thread_id, coalesce(launch_begin_ns, begin_ns);
