-- title: The model the program declared
-- unit: JSON
-- The text of the last mark of category model in the domain llmprof.
SELECT name AS model
FROM range
WHERE domain = 'llmprof' AND category = 'model' AND kind = 'mark'
ORDER BY begin_ns DESC, id DESC
LIMIT 1;
