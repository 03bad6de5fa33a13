-- title: Steps whose times tell what recording costs
-- unit: ns
-- Not those in which the program warms up or counters were read, where a stage has others. recorded: share of the kernels that the
-- step launched whose times were recorded; of a step that launched none, or only CUDA graphs, 1.
WITH kernels AS (
  SELECT a.step_id, avg(CASE WHEN k.estimated THEN 0 ELSE 1 END) AS recorded
  FROM attribution AS a JOIN kernel AS k ON k.id = a.kernel_id
  WHERE a.step_id IS NOT NULL AND EXISTS (SELECT 1 FROM kernel WHERE estimated)
  GROUP BY a.step_id)
SELECT s.stage, s.begin_ns, s.end_ns, coalesce(k.recorded, 1) AS recorded
FROM paced_step AS s LEFT JOIN kernels AS k ON k.step_id = s.id
WHERE s.steady
ORDER BY s.stage, s.begin_ns;
