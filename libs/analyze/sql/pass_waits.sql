-- title: Calls in which the host waits for a device, for the owners of a step's time
-- unit: ns
-- Read in slices of time: the caller adds the bounds of begin_ns.
SELECT begin_ns, end_ns, thread_id
FROM (SELECT * FROM api WHERE waits OR contains(name, 'Synchronize'))
