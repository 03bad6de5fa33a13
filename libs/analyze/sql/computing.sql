-- title: When devices compute
-- unit: ns
-- Kernels but for collectives, and launches of graphs that were not recorded node by node.
SELECT k.device_id, k.begin_ns, k.end_ns FROM kernel AS k JOIN device AS d ON d.id = k.device_id
WHERE d.kind = 'gpu' AND k.name NOT LIKE '%nccl%' AND k.name NOT LIKE '%rccl%' AND k.name NOT LIKE '%all_reduce%'
  AND k.name NOT LIKE '%cross_device_reduce%'
UNION ALL
SELECT device_id, begin_ns, end_ns FROM graph_launch WHERE NOT coalesce(nodes_recorded, false)
ORDER BY 1, 2;
