-- title: Functions of a training loop, from CPU stack samples
-- unit: ns
-- Functions that a loop calls in turn, and what they stand for by their names.
SELECT function, caller, stage, samples, time_ns, passes, changes
FROM sampled_stage
ORDER BY process_id, thread_id, CASE stage WHEN 'forward' THEN 0 WHEN 'backward' THEN 1 WHEN 'optimizer' THEN 2 ELSE 3 END,
  time_ns DESC, function;
