-- title: The passes of each stage, those that begin a TPOT sample apart
-- unit: steps
-- Steps in which the program warms up are left out. Stages in the order of their first step, which began at first_ns.
WITH timed AS (
  SELECT step_id, bool_or(after_ns IS NOT NULL) AS sample
  FROM step_time
  GROUP BY step_id),
began AS (SELECT stage, min(begin_ns) AS first_ns FROM step GROUP BY stage)
SELECT s.stage, t.sample, s.pass_id, count(*) AS steps, any_value(b.first_ns) AS first_ns
FROM timed AS t JOIN step AS s ON s.id = t.step_id JOIN began AS b ON b.stage = s.stage
WHERE NOT s.warm_up
GROUP BY s.stage, t.sample, s.pass_id
ORDER BY first_ns, s.stage, t.sample, s.pass_id;
