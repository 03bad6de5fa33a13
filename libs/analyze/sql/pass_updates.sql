-- title: Launches of kernels whose names say that they update parameters
-- unit: ns
SELECT thread_id, coalesce(launch_begin_ns, begin_ns) AS begin_ns, coalesce(launch_end_ns, launch_begin_ns, end_ns) AS end_ns
FROM kernel
WHERE name IN (SELECT name FROM (SELECT DISTINCT name FROM kernel)
               WHERE regexp_matches(name, 'multi_tensor|[Aa]dam|[Aa]da[Ff]actor|SGD|sgd_|[Ll]amb_|LAMB|[Oo]ptimizer'))
ORDER BY begin_ns, end_ns;
