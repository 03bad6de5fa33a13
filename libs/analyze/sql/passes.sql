-- question: pass_calls
-- BLAS calls for the matching pass.
-- Calls that executed, with their shapes. transposed: A 1, B 2. Read in blocks: the caller adds where to begin, the order and how many.
SELECT id, thread_id, begin_ns, end_ns, m, n, k, batch, layout,
  CAST(transpose_a <> 'n' AS BIGINT) + 2 * CAST(transpose_b <> 'n' AS BIGINT) AS transposed
FROM (SELECT * FROM gemm WHERE kernel_id IS NOT NULL)

-- question: pass_captured_calls
-- BLAS calls in graphs, for the matching pass.
-- Calls that were captured into a graph which was launched, once for each such graph: calls of a graph are matched together.
SELECT g.id, n.graph AS thread_id, g.begin_ns, g.end_ns, g.m, g.n, g.k, g.batch, g.layout,
  CAST(g.transpose_a <> 'n' AS BIGINT) + 2 * CAST(g.transpose_b <> 'n' AS BIGINT) AS transposed
FROM (SELECT DISTINCT graph, gemm_id FROM graph_node WHERE gemm_id IS NOT NULL) AS n
JOIN gemm AS g ON g.id = n.gemm_id
WHERE n.graph IN (SELECT graph FROM graph_launch)
ORDER BY n.graph, g.begin_ns, g.id;

-- question: pass_copies
-- Copies for the owners of a step's time.
-- Read in slices of time: the caller adds the bounds of begin_ns.
SELECT begin_ns, end_ns, thread_id
FROM copy

-- question: pass_eager_kernels
-- Kernels outside graphs in the order of their launch.
-- Four million at most: programs run a step kernel by kernel before they capture it.
SELECT t.process_id, k.name, k.end_ns - k.begin_ns AS duration_ns
FROM kernel AS k JOIN thread AS t ON t.id = k.thread_id
WHERE k.graph_launch_id IS NULL AND k.launch_begin_ns IS NOT NULL
ORDER BY k.launch_begin_ns
LIMIT 4000000;

-- question: pass_gemms
-- The kernel that executed each BLAS call.
-- For the attribution passes: calls without a kernel of their own are left out.
SELECT kernel_id, id AS gemm_id
FROM gemm
WHERE kernel_id IS NOT NULL
ORDER BY kernel_id;

-- question: pass_graph_durations
-- How long a launch of each graph takes that is not recorded node by node.
-- Medians.
SELECT graph, quantile_disc(end_ns - begin_ns, 0.5) AS typical_ns
FROM graph_launch
WHERE NOT coalesce(nodes_recorded, false)
GROUP BY graph
ORDER BY graph;

-- question: pass_graph_kernels
-- Kernels of launched graphs in the order of their capture.
-- For graphs none of whose launches were recorded node by node: their time is divided by the same kernels outside graphs.
SELECT n.graph, l.process_id, n.id, n.name
FROM graph_node AS n
JOIN (SELECT g.graph, any_value(t.process_id) AS process_id
      FROM graph_launch AS g JOIN thread AS t ON t.id = g.thread_id
      GROUP BY g.graph) AS l ON l.graph = n.graph
WHERE n.kind IS NULL OR n.kind = 'kernel'
ORDER BY n.graph, n.captured_ns, n.id;

-- question: pass_graph_nodes
-- Nodes of graphs for the attribution passes.
-- kind: 0 a kernel, 1 a copy or fill, 2 anything else.
SELECT id, graph, captured_node, captured_ns, thread_id, gemm_id,
  CASE WHEN kind IS NULL OR kind = 'kernel' THEN 0 WHEN kind IN ('memcpy', 'memset') THEN 1 ELSE 2 END AS kind, name
FROM graph_node
ORDER BY id;

-- question: pass_kernel_ends
-- Kernels for the pass that finds the ends of steps.
-- Read in slices of time: the caller adds the bounds of begin_ns.
SELECT begin_ns, end_ns, thread_id, launch_begin_ns, device_id
FROM kernel

-- question: pass_kernel_slices
-- Kernels and graph launches per slice of time.
-- Where to cut them so that no block of the attribution passes gets large: 256 slices of equal length.
WITH work AS (SELECT begin_ns FROM kernel UNION ALL SELECT begin_ns FROM graph_launch),
span AS (SELECT min(begin_ns) AS first_ns, max(begin_ns) AS last_ns FROM work)
SELECT first_ns + slice * ((last_ns - first_ns) // 256 + 1) AS begin_ns, count(*) AS kernels
FROM (SELECT (k.begin_ns - s.first_ns) // ((s.last_ns - s.first_ns) // 256 + 1) AS slice, s.first_ns, s.last_ns
      FROM work AS k CROSS JOIN span AS s)
GROUP BY ALL
ORDER BY begin_ns;

-- question: pass_kernel_sums
-- Kernels for the attribution passes, with what is added up.
-- As pass_kernels, and what the sums over kernels that are alike need besides.
SELECT begin_ns, end_ns, thread_id, launch_begin_ns, device_id, id, gemm_id, graph_node_id, launch_end_ns, stream,
  graph_launch_id, stack_id, name, CAST(coalesce(estimated, false) AS BIGINT) AS estimated
FROM kernel

-- question: pass_kernels
-- Kernels for the attribution passes.
-- Read in slices of time: the caller adds the bounds of begin_ns.
SELECT begin_ns, end_ns, thread_id, launch_begin_ns, device_id, id, gemm_id, graph_node_id
FROM kernel

-- question: pass_launch_sequence
-- What each thread launched, in order.
-- For telling steps from repetition: kernels by name and graphs by the nodes they were captured from. Where graphs did most
-- of a thread's work, they alone are looked at: what is launched between them varies. At most two million launches.
WITH graph_work AS (
  SELECT thread_id, 'graph ' || graph AS symbol, coalesce(launch_begin_ns, begin_ns) AS begin_ns, end_ns,
    end_ns - begin_ns AS device_ns
  FROM graph_launch),
kernel_work AS (
  SELECT thread_id, name AS symbol, coalesce(launch_begin_ns, begin_ns) AS begin_ns, end_ns, end_ns - begin_ns AS device_ns
  FROM kernel WHERE graph_launch_id IS NULL),
graph_share AS (
  SELECT thread_id, sum(device_ns) FILTER (is_graph) / sum(device_ns) AS share
  FROM (SELECT thread_id, device_ns, true AS is_graph FROM graph_work
        UNION ALL SELECT thread_id, device_ns, false FROM kernel_work)
  GROUP BY thread_id)
SELECT thread_id, symbol, begin_ns, end_ns, device_ns
FROM (SELECT * FROM graph_work
      UNION ALL
      SELECT k.* FROM kernel_work AS k JOIN graph_share AS s ON s.thread_id = k.thread_id WHERE coalesce(s.share, 0) < 0.5)
ORDER BY begin_ns
LIMIT 2000000;

-- question: pass_launch_times
-- Launches of graphs, for steps told from shapes.
-- From the launching call to the end on the device.
SELECT graph, thread_id, coalesce(launch_begin_ns, begin_ns) AS begin_ns, end_ns
FROM graph_launch
ORDER BY thread_id, coalesce(launch_begin_ns, begin_ns);

-- question: pass_launches
-- Graph launches for the attribution passes.
-- Read in slices of time: the caller adds the bounds of begin_ns.
SELECT id, begin_ns, end_ns, thread_id, launch_begin_ns, device_id, graph, coalesce(nodes_recorded, false) AS nodes_recorded
FROM graph_launch

-- question: pass_node_times
-- When the nodes of a graph execute, after the begin of their launch.
-- Medians over the launches that were recorded node by node, 64 of each graph at most. A node that a launch executes several
-- times counts as one of their durations together.
WITH recorded AS (
  SELECT id, graph, begin_ns
  FROM (SELECT *, row_number() OVER (PARTITION BY graph ORDER BY begin_ns) AS place FROM graph_launch WHERE nodes_recorded)
  WHERE place <= 64),
part AS (
  SELECT graph_launch_id, graph_node_id, begin_ns, end_ns FROM kernel WHERE graph_node_id IS NOT NULL
  UNION ALL
  SELECT graph_launch_id, graph_node_id, begin_ns, end_ns FROM copy WHERE graph_node_id IS NOT NULL),
executed AS (
  SELECT r.graph, p.graph_node_id, min(p.begin_ns) - any_value(r.begin_ns) AS begin_ns,
    sum(p.end_ns - p.begin_ns)::BIGINT AS ns
  FROM recorded AS r JOIN part AS p ON p.graph_launch_id = r.id
  GROUP BY r.id, r.graph, p.graph_node_id)
SELECT graph_node_id, graph, quantile_disc(begin_ns, 0.5) AS begin_ns, quantile_disc(begin_ns + ns, 0.5) AS end_ns,
  count(*) AS samples
FROM executed
GROUP BY graph_node_id, graph
ORDER BY graph, begin_ns, graph_node_id;

-- question: pass_members
-- Members of steps, and the rows of their products, as the engine marked them.
SELECT e.ts_ns, e.thread_id, CASE e.event WHEN 'member' THEN 1 ELSE 2 END AS event, e.request_id, e.tokens, e.context,
  CASE WHEN q.prompt_tokens > 0 THEN q.prompt_tokens END AS prompt
FROM request_event AS e LEFT JOIN request AS q ON q.id = e.request_id
WHERE e.event IN ('member', 'padded') AND (e.event = 'padded' OR e.request_id IS NOT NULL)
ORDER BY e.ts_ns, e.request_id;

-- question: pass_ranges
-- Ranges for the attribution passes.
-- Every range that has an inside. Marks have none. The passes sort by thread themselves. Those of a
-- memory snapshot are left out: it has no kernels, and repeats the ranges of the trace it is imported with.
SELECT id, begin_ns, end_ns, thread_id, process_id, depth, name, domain, category, payload
FROM range
WHERE kind IS DISTINCT FROM 'mark'
  AND source IS DISTINCT FROM 'memory-snapshot';

-- question: pass_sampled_kernels
-- Kernels of graph launches that were recorded node by node, in the order they ran.
-- One million at most: a few launches of each graph are.
SELECT t.process_id, k.name, k.end_ns - k.begin_ns AS duration_ns
FROM kernel AS k JOIN graph_launch AS g ON g.id = k.graph_launch_id JOIN thread AS t ON t.id = g.thread_id
ORDER BY g.begin_ns, g.id, k.begin_ns, k.id
LIMIT 1000000;

-- question: pass_sampled_stacks
-- Stacks for the pass that finds training loops by functions.
-- Frames of the stacks that name a way through a model, by stack, the outermost frame first. None where no function of the
-- run says backward: there is nothing to find then.
WITH says AS (
  SELECT id, regexp_matches(function, '(?i)backward|bwd|backprop') AS back
  FROM frame
  WHERE regexp_matches(function, '(?i)forward|fwd|backward|bwd|backprop|update|optim|adam|sgd|lion|valid|eval|generat')),
wanted AS (
  SELECT DISTINCT stack_id FROM stack
  WHERE frame_id IN (SELECT id FROM says) AND EXISTS (SELECT 1 FROM says WHERE back))
SELECT s.stack_id, s.depth, f.function
FROM stack AS s JOIN wanted USING (stack_id) JOIN frame AS f ON f.id = s.frame_id
ORDER BY s.stack_id, s.depth DESC;

-- question: pass_samples
-- Stack samples for the attribution pass.
-- Read in blocks: the caller adds the bounds of id.
SELECT id, thread_id, ts_ns
FROM sample

-- question: pass_threads
-- The process of each thread.
-- For the attribution passes: kernels of worker threads look for the step of their process.
SELECT id, process_id FROM thread;

-- question: pass_updates
-- Launches of kernels whose names say that they update parameters.
SELECT thread_id, coalesce(launch_begin_ns, begin_ns) AS begin_ns, coalesce(launch_end_ns, launch_begin_ns, end_ns) AS end_ns
FROM kernel
WHERE name IN (SELECT name FROM (SELECT DISTINCT name FROM kernel)
               WHERE regexp_matches(name, 'multi_tensor|[Aa]dam|[Aa]da[Ff]actor|SGD|sgd_|[Ll]amb_|LAMB|[Oo]ptimizer'))
ORDER BY begin_ns, end_ns;

-- question: pass_waits
-- Calls in which the host waits for a device, for the owners of a step's time.
-- Read in slices of time: the caller adds the bounds of begin_ns.
SELECT begin_ns, end_ns, thread_id
FROM (SELECT * FROM api WHERE waits OR contains(name, 'Synchronize'))

-- question: step_curves
-- How long each step took, in order of time.
-- A step lasts from its turn to its end: a host that runs ahead of the device does not make it longer. A prefill step lasts
-- from its begin, as somebody waits for it.
SELECT stage, begin_ns,
  greatest(end_ns - CASE WHEN stage = 'prefill' THEN begin_ns ELSE turn_ns END, 0)::BIGINT AS duration_ns,
  coalesce(batch, 0) AS batch, coalesce(context, 0) AS context
FROM step
ORDER BY begin_ns, id;
