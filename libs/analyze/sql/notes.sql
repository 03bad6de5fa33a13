-- title: What to know about how the run was recorded
-- unit: notes
-- The same note of several processes once.
SELECT subject, text, count(*) AS notes
FROM note
GROUP BY subject, text
ORDER BY min(ts_ns), subject, text;
