-- title: What was recorded
-- unit: counts, ns
-- wall_ns runs from the first to the last event; the begin and end of a process are events too, so that of a recorded
-- program it runs from its exec to its exit.
-- attributed_kernel_ns: kernels that belong to a step. gpu_*: of devices that are no CPU; gpu_node_ns: of a known kernel, graph
-- nodes included; estimated: in graph launches that were not recorded node by node.
WITH event AS (
  SELECT min(begin_ns) AS first_ns, max(end_ns) AS last_ns FROM kernel
  UNION ALL SELECT min(begin_ns), max(end_ns) FROM graph_launch
  UNION ALL SELECT min(begin_ns), max(end_ns) FROM range
  UNION ALL SELECT min(begin_ns), max(end_ns) FROM copy
  UNION ALL SELECT min(begin_ns), max(end_ns) FROM op
  UNION ALL SELECT min(begin_ns), max(coalesce(end_ns, last_reading_ns, begin_ns)) FROM process_life),
total AS (
  SELECT sum(w.executions) AS kernels, sum(w.time_ns) AS ns, sum(w.time_ns) FILTER (w.in_step) AS in_step_ns,
    sum(w.time_ns) FILTER (d.kind <> 'cpu') AS gpu_ns,
    sum(w.time_ns) FILTER (d.kind <> 'cpu' AND w.stage IS NOT NULL) AS gpu_stage_ns,
    sum(w.time_ns) FILTER (d.kind <> 'cpu' AND w.known) AS gpu_node_ns,
    sum(w.time_ns) FILTER (d.kind <> 'cpu' AND w.stage IS NOT NULL AND w.known) AS gpu_placed_ns,
    sum(w.time_ns) FILTER (d.kind <> 'cpu' AND w.module IS NOT NULL) AS gpu_module_ns,
    sum(w.time_ns) FILTER (w.source = 'estimated') AS estimated_ns,
    sum(w.time_ns) FILTER (w.source = 'estimated' AND w.stage IS NOT NULL) AS estimated_placed_ns,
    sum(w.executions) FILTER (w.source = 'estimated') AS estimated_kernels
  FROM work_sum AS w LEFT JOIN device AS d ON d.id = w.device_id)
SELECT
  (SELECT count(*) FROM process) AS processes,
  (SELECT count(*) FROM process WHERE injected) AS injected,
  (SELECT count(*) FROM thread) AS threads,
  coalesce(kernels, 0)::BIGINT AS kernels,
  (SELECT count(*) FROM range) AS ranges,
  (SELECT count(*) FROM gemm) AS gemms,
  (SELECT coalesce(max(last_ns) - min(first_ns), 0) FROM event) AS wall_ns,
  coalesce(ns, 0)::BIGINT AS kernel_ns,
  coalesce(in_step_ns, 0)::BIGINT AS attributed_kernel_ns,
  (SELECT count(*) FROM loss WHERE severity = 'data_loss') AS data_losses,
  coalesce(gpu_ns, 0)::BIGINT AS gpu_ns, coalesce(gpu_stage_ns, 0)::BIGINT AS gpu_stage_ns,
  coalesce(gpu_node_ns, 0)::BIGINT AS gpu_node_ns, coalesce(gpu_placed_ns, 0)::BIGINT AS gpu_placed_ns,
  coalesce(gpu_module_ns, 0)::BIGINT AS gpu_module_ns, coalesce(estimated_ns, 0)::BIGINT AS estimated_ns,
  coalesce(estimated_placed_ns, 0)::BIGINT AS estimated_placed_ns,
  coalesce(estimated_kernels, 0)::BIGINT AS estimated_kernels,
  (SELECT count(*) FROM graph_launch) AS graph_launches,
  (SELECT count(*) FROM graph_launch WHERE nodes_recorded) AS graph_launches_by_node,
  (SELECT count(DISTINCT graph) FROM graph_launch) AS graphs,
  (SELECT count(*) FROM kernel AS k JOIN device AS d ON d.id = k.device_id
   WHERE d.kind <> 'cpu' AND k.launch_begin_ns IS NULL) AS kernels_without_launch
FROM total;
