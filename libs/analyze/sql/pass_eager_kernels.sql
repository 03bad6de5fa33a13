-- title: Kernels outside graphs in the order of their launch
-- unit: ns
-- Four million at most: programs run a step kernel by kernel before they capture it.
SELECT t.process_id, k.name, k.end_ns - k.begin_ns AS duration_ns
FROM kernel AS k JOIN thread AS t ON t.id = k.thread_id
WHERE k.graph_launch_id IS NULL AND k.launch_begin_ns IS NOT NULL
ORDER BY k.launch_begin_ns
LIMIT 4000000;
