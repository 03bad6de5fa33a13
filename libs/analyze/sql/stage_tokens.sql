-- title: New tokens by stage and process
-- unit: tokens
-- New tokens over all sequences; a step that does not say its size has none, a generation may compute all tokens for each new
-- one, and of tokens that are drafted or checked it is not known which were taken: at least one of each sequence
-- (least_taken), at most all that were checked.
SELECT stage, process_id,
  coalesce(sum(coalesce(batch * tokens, rows)) FILTER (stage NOT IN ('generation', 'draft', 'verify')), 0)::BIGINT AS tokens,
  coalesce(sum(coalesce(batch, 1)) FILTER (stage = 'verify' AND rows > 0), 0)::BIGINT AS least_taken,
  coalesce(sum(rows) FILTER (stage = 'verify'), 0)::BIGINT AS checked
FROM step
GROUP BY stage, process_id
ORDER BY stage, process_id;
