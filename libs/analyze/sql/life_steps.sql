-- title: Steps over the program's life
-- unit: ns
SELECT process_id, begin_ns, end_ns, stage, coalesce(warm_up, false)::BIGINT AS warm_up, source
FROM step
ORDER BY begin_ns, end_ns;
