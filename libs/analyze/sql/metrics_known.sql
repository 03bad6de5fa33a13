-- title: Values of metrics by name and labels, in order of time
-- unit: by row
-- The caller puts the names in. Values without a time come in the order of the files.
SELECT name, coalesce(labels, '') AS labels, ts_ns, value
FROM metric
WHERE name IN ('')
ORDER BY name, labels, ts_ns, id;
