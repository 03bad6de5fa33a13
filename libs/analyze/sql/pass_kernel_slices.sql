-- title: Kernels and graph launches per slice of time
-- unit: count
-- Where to cut them so that no block of the attribution passes gets large: 256 slices of equal length.
WITH work AS (SELECT begin_ns FROM kernel UNION ALL SELECT begin_ns FROM graph_launch),
span AS (SELECT min(begin_ns) AS first_ns, max(begin_ns) AS last_ns FROM work)
SELECT first_ns + slice * ((last_ns - first_ns) // 256 + 1) AS begin_ns, count(*) AS kernels
FROM (SELECT (k.begin_ns - s.first_ns) // ((s.last_ns - s.first_ns) // 256 + 1) AS slice, s.first_ns, s.last_ns
      FROM work AS k CROSS JOIN span AS s)
GROUP BY ALL
ORDER BY begin_ns;
