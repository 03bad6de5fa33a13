-- title: The passes of each stage, those that begin a TPOT sample apart
-- unit: steps
-- Stages in the order of their first step, which began at first_ns.
WITH timed AS (
  SELECT step_id, bool_or(after_ns IS NOT NULL) AS sample
  FROM step_time
  GROUP BY step_id)
SELECT s.stage, t.sample, s.pass_id, count(*) AS steps, min(min(s.begin_ns)) OVER (PARTITION BY s.stage) AS first_ns
FROM timed AS t JOIN step AS s ON s.id = t.step_id
GROUP BY s.stage, t.sample, s.pass_id
ORDER BY first_ns, s.stage, t.sample, s.pass_id;
