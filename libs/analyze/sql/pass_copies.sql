-- title: Copies for the owners of a step's time
-- unit: ns
-- Read in slices of time: the caller adds the bounds of begin_ns.
SELECT begin_ns, end_ns, thread_id
FROM copy
