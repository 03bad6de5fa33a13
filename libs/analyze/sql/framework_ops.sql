-- title: Operators of the framework with the device time of what they launched themselves
-- unit: ns
-- In the order in which they nest on their thread. device_ns: kernels and copies whose launch lies directly in the operator.
WITH launched AS (
  SELECT op_id, sum(end_ns - begin_ns) AS ns, count(*) AS n
  FROM (SELECT op_id, begin_ns, end_ns FROM kernel UNION ALL SELECT op_id, begin_ns, end_ns FROM copy)
  WHERE op_id IS NOT NULL
  GROUP BY op_id)
SELECT o.thread_id, o.begin_ns, o.end_ns, o.name, coalesce(l.ns, 0)::BIGINT AS device_ns, coalesce(l.n, 0)::BIGINT AS launches
FROM op AS o LEFT JOIN launched AS l ON l.op_id = o.id
ORDER BY o.thread_id, o.begin_ns, o.end_ns DESC, o.id;
