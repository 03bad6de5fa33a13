-- title: What recording itself cost
-- unit: counts, bytes, ns
-- The last note of each process, added up. The cost of one event was measured on the machine that recorded.
SELECT count(*) AS processes,
  coalesce(sum(range_events), 0)::BIGINT AS range_events,
  coalesce(sum(gemm_events), 0)::BIGINT AS gemm_events,
  coalesce(sum(gpu_events), 0)::BIGINT AS gpu_events,
  coalesce(sum(log_bytes), 0)::BIGINT AS log_bytes,
  coalesce(sum(writer_cpu_ns), 0)::BIGINT AS writer_cpu_ns,
  max(range_event_ns) AS range_event_ns,
  max(gemm_event_ns) AS gemm_event_ns,
  (SELECT count(*) FROM kernel WHERE graph_launch_id IS NULL AND NOT coalesce(estimated, false)) AS timed_kernels
FROM (
  SELECT process_id, arg_max(range_events, ts_ns) AS range_events, arg_max(gemm_events, ts_ns) AS gemm_events,
    arg_max(gpu_events, ts_ns) AS gpu_events,
    arg_max(log_bytes, ts_ns) AS log_bytes, arg_max(writer_cpu_ns, ts_ns) AS writer_cpu_ns,
    max(range_event_ns) AS range_event_ns, max(gemm_event_ns) AS gemm_event_ns
  FROM collector_cost
  GROUP BY process_id);
