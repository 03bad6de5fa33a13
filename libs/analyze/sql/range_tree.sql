-- title: The tree of ranges
-- unit: ns
-- A row is all ranges of a name inside those of the row around it (parent_id; 0: none). Host times are those of the
-- ranges; kernel_ns are the kernels launched in them and in what is inside.
SELECT id, coalesce(parent_id, 0) AS parent_id, name, coalesce(kind, '') AS kind, coalesce(stage, '') AS stage, ranges,
  total_ns, self_ns, kernel_ns
FROM range_tree
ORDER BY kernel_ns DESC, total_ns DESC, id;
