-- title: Stack samples for the attribution pass
-- unit: ns
-- Read in blocks: the caller adds the bounds of id.
SELECT id, thread_id, ts_ns
FROM sample
