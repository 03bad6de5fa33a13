-- title: Training steps
-- unit: ns
-- Forward, backward and optimizer steps of one thread that belong together. A training step ends with its optimizer step, so
-- several forward and backward steps before it (gradient accumulation) are one; where a thread never updates, it ends before
-- the forward step that follows a backward step. Threads that only go forward do not train. A step lasts from its turn to its
-- end: a host that runs ahead of the device does not make it longer.
WITH pass AS (
  SELECT process_id, thread_id, stage, begin_ns, end_ns, turn_ns, coalesce(batch * tokens, rows) AS new_tokens, greatest(end_ns - turn_ns, 0) AS lasted_ns, lag(stage) OVER follow AS before,
    bool_or(stage = 'forward') OVER whole AS reads,
    bool_or(stage = 'backward') OVER whole AS learns,
    bool_or(stage = 'optimizer') OVER whole AS updates
  FROM step
  WHERE stage IN ('forward', 'backward', 'optimizer')
  WINDOW follow AS (PARTITION BY process_id, thread_id ORDER BY begin_ns, end_ns),
    whole AS (PARTITION BY process_id, thread_id)),
numbered AS (
  SELECT *, count(*) FILTER (CASE WHEN updates THEN before = 'optimizer' AND stage <> 'optimizer'
    ELSE before = 'backward' AND stage = 'forward' END)
    OVER (PARTITION BY process_id, thread_id ORDER BY begin_ns, end_ns ROWS UNBOUNDED PRECEDING) AS number
  FROM pass
  WHERE reads AND (learns OR updates))
SELECT process_id, thread_id, number, min(begin_ns) AS begin_ns,
  coalesce(sum(lasted_ns) FILTER (stage = 'forward'), 0)::BIGINT AS forward_ns,
  coalesce(sum(lasted_ns) FILTER (stage = 'backward'), 0)::BIGINT AS backward_ns,
  coalesce(sum(lasted_ns) FILTER (stage = 'optimizer'), 0)::BIGINT AS optimizer_ns,
  max(end_ns) - min(turn_ns) AS total_ns,
  coalesce(sum(new_tokens) FILTER (stage = 'forward'), 0)::BIGINT AS tokens
FROM numbered
GROUP BY process_id, thread_id, number
ORDER BY process_id, thread_id, number;
