-- title: How well CPU stacks were sampled
-- unit: samples
-- truncated: the outer end of the stack is missing. why: what forbade sampling.
SELECT count(*)::BIGINT AS samples, count(*) FILTER (truncated AND stack_id IS NOT NULL)::BIGINT AS truncated,
  count(*) FILTER (stack_id IS NULL)::BIGINT AS without_stack, coalesce(sum(weight_ns), 0)::BIGINT AS sampled_ns,
  coalesce((SELECT sum(count) FROM loss WHERE name = 'samples_lost'), 0)::BIGINT AS lost,
  coalesce((SELECT any_value(detail) FROM loss WHERE name = 'no_stack_samples'), '') AS why
FROM sample;
