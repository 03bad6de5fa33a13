-- title: Kernels for the pass that finds the ends of steps
-- unit: ns
-- Read in slices of time: the caller adds the bounds of begin_ns.
SELECT begin_ns, end_ns, thread_id, launch_begin_ns, device_id
FROM kernel
