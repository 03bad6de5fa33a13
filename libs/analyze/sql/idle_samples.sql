-- title: CPU time of the threads that make steps while their device idles, by stack
-- unit: ns
-- By stack samples. Where the device is a CPU: outside of its kernels.
SELECT t.stage, t.warm_up, s.stack_id, count(*) AS samples, sum(s.weight_ns)::BIGINT AS cpu_ns
FROM sample_place AS p
  JOIN sample AS s ON s.id = p.sample_id
  JOIN step AS t ON t.id = p.idle_in_step AND t.thread_id = s.thread_id
GROUP BY ALL
ORDER BY t.stage, t.warm_up, cpu_ns DESC, s.stack_id;
