-- title: Graph launches for the attribution passes
-- unit: ns
-- Read in slices of time: the caller adds the bounds of begin_ns.
SELECT id, begin_ns, end_ns, thread_id, launch_begin_ns, device_id, graph, coalesce(nodes_recorded, false) AS nodes_recorded
FROM graph_launch
