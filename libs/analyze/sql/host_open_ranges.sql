-- title: Ranges with their threads, outer ones first
-- unit: ns
-- For the ranges that were open at one moment: the caller adds which.
SELECT process_id, thread_id, begin_ns, end_ns, name
FROM range
WHERE kind IS DISTINCT FROM 'mark'
