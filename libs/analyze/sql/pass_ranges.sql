-- title: Ranges for the attribution passes
-- unit: ns
-- Every range that has an inside. Marks have none. The passes sort by thread themselves. Those of a
-- memory snapshot are left out: it has no kernels, and repeats the ranges of the trace it is imported with.
SELECT id, begin_ns, end_ns, thread_id, process_id, depth, name, domain, category, payload
FROM range
WHERE kind IS DISTINCT FROM 'mark'
  AND source IS DISTINCT FROM 'memory-snapshot';
