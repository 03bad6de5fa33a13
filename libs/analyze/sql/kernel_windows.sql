-- title: Kernels in order of time
-- unit: ns
-- For the busy time of a stage whose steps overlap (several threads or processes).
SELECT device_id, begin_ns, end_ns FROM kernel ORDER BY begin_ns;
