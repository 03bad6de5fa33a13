-- title: How large the steps of each stage are
-- unit: sequences, tokens
-- Means over the steps that say it; largest_context is the longest.
SELECT stage, avg(batch) AS batch, avg(tokens) AS tokens, avg(context) AS context, max(context) AS largest_context
FROM step
GROUP BY stage
ORDER BY stage;
