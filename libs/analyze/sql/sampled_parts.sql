-- title: Parts of a training loop's stages, from CPU stack samples
-- unit: ns
-- A part is what a function of the loop calls. CPU time of all threads.
SELECT p.stage, p.module AS part, count(*) AS samples, sum(s.weight_ns)::BIGINT AS time_ns
FROM sample_place AS p JOIN sample AS s ON s.id = p.sample_id
WHERE p.source = 'sampled'
GROUP BY p.stage, p.module
ORDER BY time_ns DESC, p.stage, p.module;
