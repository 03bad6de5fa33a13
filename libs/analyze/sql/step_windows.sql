-- title: Steps in order of time
-- unit: ns
-- For the union of step windows, which is the time of a stage.
SELECT stage, begin_ns, end_ns, stage_busy_ns, process_id FROM step ORDER BY begin_ns;
