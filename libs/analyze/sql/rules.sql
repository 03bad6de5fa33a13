-- question: expert_balance
-- Tokens and time of experts.
-- Modules named ….experts.N. The rows of a product are its m where the caller stores rows, else its n. An expert without
-- tokens is not called, so the mean counts all experts of the layer that were called at any time.
WITH product AS (
  SELECT a.stage, a.step_id, k.device_id, regexp_extract(a.module, '^(.*)\.experts\.[0-9]+', 1) AS layer,
    regexp_extract(a.module, '\.experts\.([0-9]+)', 1) AS expert,
    CASE WHEN g.layout = 'column' OR (g.layout IS NULL AND contains(g.library, 'cublas')) THEN g.n ELSE g.m END AS rows,
    k.end_ns - k.begin_ns AS ns
  FROM kernel AS k JOIN attribution AS a ON a.kernel_id = k.id JOIN gemm AS g ON g.id = a.gemm_id
  WHERE a.step_id IS NOT NULL AND a.gemm_call AND contains(a.module, '.experts.') AND a.stage NOT IN ('load', 'warm-up')),
known AS (SELECT layer, count(DISTINCT expert) AS experts FROM product GROUP BY layer),
called AS (SELECT stage, step_id, layer, expert, max(rows) AS rows FROM product GROUP BY ALL),
tokens AS (
  SELECT c.stage, c.step_id, c.layer, max(c.rows) AS most, sum(c.rows) / any_value(k.experts) AS mean,
    any_value(k.experts) AS experts
  FROM called AS c JOIN known AS k USING (layer) GROUP BY ALL),
on_device AS (SELECT stage, step_id, layer, device_id, sum(ns) AS ns FROM product GROUP BY ALL),
used AS (SELECT stage, count(DISTINCT device_id) AS devices FROM product GROUP BY stage),
time AS (
  SELECT d.stage, d.step_id, d.layer, max(d.ns) AS slowest, sum(d.ns) / any_value(u.devices) AS balanced, sum(d.ns) AS ns,
    any_value(u.devices) AS devices
  FROM on_device AS d JOIN used AS u USING (stage) GROUP BY ALL)
SELECT t.stage, count(DISTINCT t.layer) AS layers, max(t.experts) AS experts, count(*) AS passes,
  avg(t.most) AS most_rows, avg(t.mean) AS mean_rows, arg_max(t.layer, t.most / t.mean) AS worst_layer,
  max(t.most / t.mean) AS worst_ratio, max(x.devices) AS devices, CAST(sum(x.ns) AS DOUBLE) AS time_ns,
  CAST(sum(x.slowest) AS DOUBLE) AS slowest_ns, CAST(sum(x.balanced) AS DOUBLE) AS balanced_ns
FROM tokens AS t JOIN time AS x USING (stage, step_id, layer)
GROUP BY t.stage ORDER BY t.stage;

-- question: graph_buckets
-- Sizes of graphs and of the steps they were launched for.
-- captured_rows: rows of most matrix products that were captured; rows: batch x tokens of the step. Steps that launch several
-- graphs are left out: pieces of a step may have any size.
WITH products AS (
  SELECT n.graph, CASE WHEN g.layout = 'column' OR (g.layout IS NULL AND contains(g.library, 'cublas')) THEN g.n ELSE g.m END AS rows
  FROM graph_node AS n JOIN node_place AS p ON p.graph_node_id = n.id JOIN gemm AS g ON g.id = p.gemm_id
  WHERE p.gemm_call),
sizes AS (SELECT graph, rows, count(*) AS products FROM products GROUP BY ALL),
captured AS (SELECT graph, arg_max(rows, products) AS rows FROM sizes GROUP BY graph),
alone AS (SELECT step_id FROM launch_place WHERE step_id IS NOT NULL GROUP BY step_id HAVING count(*) = 1)
SELECT s.stage, c.rows AS captured_rows, s.batch * s.tokens AS rows, count(*) AS launches,
  CAST(sum(l.end_ns - l.begin_ns) AS BIGINT) AS time_ns, quantile_disc(l.end_ns - l.begin_ns, 0.5) AS median_ns
FROM graph_launch AS l
JOIN launch_place AS p ON p.graph_launch_id = l.id
JOIN alone AS a ON a.step_id = p.step_id
JOIN step AS s ON s.id = p.step_id
JOIN captured AS c ON c.graph = l.graph
WHERE s.batch IS NOT NULL AND s.tokens IS NOT NULL AND s.stage NOT IN ('load', 'warm-up')
GROUP BY ALL ORDER BY ALL;

-- question: pinned_rates
-- The fastest copies from and to pinned memory.
-- Of copies of 1 MB or more; small ones are latency.
SELECT direction, max(bytes / (end_ns - begin_ns) * 1e9) AS bytes_per_s, count(*) AS copies
FROM copy
WHERE host_memory = 'pinned' AND bytes >= 1000000 AND end_ns > begin_ns
GROUP BY direction
ORDER BY direction;

-- question: product_kernels
-- The kernels behind the matrix products of each stage.
-- One row per stage, shape, type and kernel, the costliest first; calls that an estimate stands for included. Groups of one
-- call share the time of its kernel by FLOPs. blocks, threads,
-- registers and shared memory are those of a measured launch; 0 if there is none.
WITH measured AS (
  SELECT gemm_id, name, max(grid_x::BIGINT * grid_y * grid_z) AS blocks, max(block_x * block_y * block_z) AS threads,
    max(registers) AS registers, max(shared_bytes) AS shared_bytes
  FROM kernel
  WHERE gemm_id IS NOT NULL AND stream IS NOT NULL
  GROUP BY gemm_id, name),
launched AS (
  SELECT g.m, g.n, g.k, g.batch, k.name, max(k.blocks) AS blocks, max(k.threads) AS threads, max(k.registers) AS registers,
    max(k.shared_bytes) AS shared_bytes
  FROM measured AS k JOIN gemm AS g ON g.id = k.gemm_id
  GROUP BY ALL),
done AS (
  SELECT w.stage, g.m, g.n, g.k, g.batch, g.type_a AS type, g.compute_type, w.name, sum(w.executions)::BIGINT AS executions,
    sum(w.time_ns)::BIGINT AS time_ns
  FROM work_product AS w JOIN gemm AS g ON g.id = w.gemm_id
  WHERE w.in_step
  GROUP BY ALL)
SELECT d.stage, d.m, d.n, d.k, d.batch, d.type, d.compute_type, d.name AS kernel, d.executions, d.time_ns,
  coalesce(l.blocks, 0) AS blocks, coalesce(l.threads, 0) AS threads, coalesce(l.registers, 0) AS registers,
  coalesce(l.shared_bytes, 0) AS shared_bytes
FROM done AS d LEFT JOIN launched AS l
  ON l.m = d.m AND l.n = d.n AND l.k = d.k AND l.batch = d.batch AND l.name = d.name
ORDER BY d.time_ns DESC, d.stage, d.m, d.n, d.k, d.name
LIMIT 400;

-- question: program
-- Whether the program uses PyTorch.
-- torch: one of its kernels, operators, libraries or functions is PyTorch's. known: else that it is not, as it is no Python
-- program or its functions are known.
SELECT EXISTS (SELECT 1 FROM kernel_sum WHERE contains(name, 'at::native') OR contains(name, 'at_cuda_detail'))
    OR EXISTS (SELECT 1 FROM op WHERE starts_with(name, 'aten::'))
    OR EXISTS (SELECT 1 FROM summary WHERE starts_with(name, 'aten::'))
    OR EXISTS (SELECT 1 FROM frame WHERE contains(file, 'libtorch') OR contains(file, '/torch/'))
    OR EXISTS (SELECT 1 FROM note WHERE contains(text, 'PyTorch')) AS torch,
  EXISTS (SELECT 1 FROM frame)
    OR EXISTS (SELECT 1 FROM process WHERE injected)
      AND NOT EXISTS (SELECT 1 FROM process WHERE contains(coalesce(executable, '') || coalesce(arguments, ''), 'python')) AS known;

-- question: stage_copies
-- Copies between host and device in each stage.
-- A copy belongs to the last step that its thread had begun when it asked for it. call_ns: host time inside the asking calls.
-- largest_bytes: of one copy.
WITH asked AS (
  SELECT thread_id, coalesce(launch_begin_ns, begin_ns) AS at_ns, direction, host_memory, bytes, end_ns - begin_ns AS time_ns,
    launch_end_ns - launch_begin_ns AS call_ns
  FROM copy
  WHERE direction IN ('host_to_device', 'device_to_host'))
SELECT s.stage, c.direction, c.host_memory, count(*) AS copies, count(DISTINCT s.id) AS steps, sum(c.bytes)::BIGINT AS bytes,
  max(c.bytes) AS largest_bytes, sum(c.time_ns)::BIGINT AS time_ns, coalesce(sum(c.call_ns), 0)::BIGINT AS call_ns
FROM asked AS c ASOF JOIN step AS s ON c.thread_id = s.thread_id AND c.at_ns >= s.begin_ns
GROUP BY s.stage, c.direction, c.host_memory
ORDER BY s.stage, time_ns DESC, c.direction, c.host_memory;

-- question: stage_launches
-- Kernels that the host launched one by one in each stage.
-- call_ns: host time inside the launching calls, where it is known. Kernels of graph launches do not count.
SELECT stage, sum(launches)::BIGINT AS launches, sum(timed_launches)::BIGINT AS timed, sum(launch_ns)::BIGINT AS call_ns
FROM kernel_sum
WHERE in_step AND launches > 0
GROUP BY stage
ORDER BY stage;

-- question: stage_operator_bytes
-- What the operators of each stage must move and compute.
-- One row per stage and operator, over all steps whose size is known.
SELECT s.stage, o.op, sum(s.steps * o.flops) AS flops, sum(s.steps * o.weight_bytes) AS weight_bytes,
  sum(s.steps * o.kv_bytes) AS kv_bytes, sum(s.steps * o.activation_bytes) AS activation_bytes
FROM (SELECT stage, pass_id, count(*) AS steps FROM step WHERE pass_id IS NOT NULL GROUP BY ALL) AS s
JOIN model_op AS o ON o.pass_id = s.pass_id
GROUP BY s.stage, o.op
ORDER BY s.stage, o.op;

-- question: stage_sizes
-- How large the steps of each stage are.
-- Means over the steps that say it; largest_context is the longest.
SELECT stage, avg(batch) AS batch, avg(tokens) AS tokens, avg(context) AS context, max(context) AS largest_context
FROM step
GROUP BY stage
ORDER BY stage;

-- question: stage_waits
-- Calls in which the host waits for a device, by the step they follow.
-- A call belongs to the last step that its thread had begun; steps counts those with at least one such call.
WITH waiting AS (SELECT thread_id, begin_ns, end_ns, name FROM api WHERE waits OR contains(name, 'Synchronize'))
SELECT s.stage, w.name, count(*) AS calls, count(DISTINCT s.id) AS steps, sum(w.end_ns - w.begin_ns)::BIGINT AS time_ns
FROM waiting AS w ASOF JOIN step AS s ON w.thread_id = s.thread_id AND w.begin_ns >= s.begin_ns
GROUP BY s.stage, w.name
ORDER BY s.stage, time_ns DESC, w.name;

-- question: step_kernels
-- Kernels of some steps of each stage.
-- At most 128 steps of a stage, evenly chosen; not those in which the program warms up, where there are others. Launches of graphs that were not recorded node by node are expanded with the
-- shares of their nodes. steps: of the stage; read: of these, chosen.
WITH numbered AS (
  SELECT id, stage, row_number() OVER alike - 1 AS place, count(*) OVER (PARTITION BY stage) AS steps
  FROM step WHERE stage NOT IN ('load', 'warm-up')
  WINDOW alike AS (PARTITION BY stage, warm_up ORDER BY begin_ns)
  QUALIFY NOT warm_up OR bool_and(warm_up) OVER (PARTITION BY stage)),
chosen AS (
  SELECT id, stage, steps, count(*) OVER (PARTITION BY stage) AS read
  FROM numbered WHERE place % CAST(ceil(steps / 128.0) AS BIGINT) = 0),
executed AS (
  SELECT a.step_id, k.device_id, k.stream, k.begin_ns, k.end_ns, k.name, a.op, a.gemm_id, 0 AS estimated
  FROM kernel AS k JOIN attribution AS a ON a.kernel_id = k.id
  WHERE a.step_id IN (SELECT id FROM chosen)
  UNION ALL
  SELECT p.step_id, l.device_id, l.stream,
    l.begin_ns + CAST(round(s.begin_share * (l.end_ns - l.begin_ns)) AS BIGINT),
    l.begin_ns + CAST(round(s.end_share * (l.end_ns - l.begin_ns)) AS BIGINT), n.name, np.op, np.gemm_id, 1
  FROM launch_place AS p
  JOIN graph_launch AS l ON l.id = p.graph_launch_id
  JOIN graph_node AS n ON n.graph = l.graph
  JOIN node_share AS s ON s.graph_node_id = n.id
  LEFT JOIN node_place AS np ON np.graph_node_id = n.id
  WHERE p.step_id IN (SELECT id FROM chosen) AND NOT coalesce(l.nodes_recorded, false)
    AND (n.kind IS NULL OR n.kind = 'kernel'))
SELECT c.stage, e.step_id, e.device_id, coalesce(e.stream, 0) AS stream, e.begin_ns, e.end_ns, e.name, e.op,
  CAST(e.gemm_id IS NOT NULL AS BIGINT) AS product, CAST(e.estimated AS BIGINT) AS estimated, c.steps, c.read
FROM executed AS e
JOIN chosen AS c ON c.id = e.step_id
JOIN device AS d ON d.id = e.device_id
WHERE d.kind = 'gpu';

-- question: computing
-- When devices compute.
-- Kernels but for collectives, and launches of graphs that were not recorded node by node.
SELECT k.device_id, k.begin_ns, k.end_ns FROM kernel AS k JOIN device AS d ON d.id = k.device_id
WHERE d.kind = 'gpu' AND k.name NOT LIKE '%nccl%' AND k.name NOT LIKE '%rccl%' AND k.name NOT LIKE '%all_reduce%'
  AND k.name NOT LIKE '%cross_device_reduce%'
UNION ALL
SELECT device_id, begin_ns, end_ns FROM graph_launch WHERE NOT coalesce(nodes_recorded, false)
ORDER BY 1, 2;

-- question: load
-- How a program spends the time before the model is ready.
-- The longest step of stage load, or what passed before the first step of the process that makes most of them. function: the
-- innermost one with a name that most samples of the loading thread are in, Python's where there is one, as it tells which
-- line to change.
WITH busiest AS (SELECT process_id FROM step WHERE stage <> 'load' GROUP BY 1 ORDER BY count(*) DESC, 1 LIMIT 1),
first AS (
  SELECT s.process_id, s.thread_id, s.begin_ns FROM step AS s JOIN busiest USING (process_id)
  WHERE s.stage <> 'load' ORDER BY s.begin_ns LIMIT 1),
load AS (
  SELECT 1 AS declared, process_id, thread_id, begin_ns, end_ns FROM (
    SELECT * FROM step WHERE stage = 'load' ORDER BY end_ns - begin_ns DESC LIMIT 1)
  UNION ALL
  SELECT 0, f.process_id, f.thread_id, p.begin_ns, f.begin_ns FROM first AS f JOIN process_life AS p USING (process_id)
  ORDER BY 1 DESC LIMIT 1),
usage AS (
  SELECT CAST(max(u.user_ns + u.system_ns) - min(u.user_ns + u.system_ns) AS BIGINT) AS process_cpu_ns,
    CAST(max(u.read_bytes) - min(u.read_bytes) AS BIGINT) AS read_bytes,
    CAST(max(u.major_faults) - min(u.major_faults) AS BIGINT) AS major_faults,
    CAST(max(u.involuntary_switches) - min(u.involuntary_switches) AS BIGINT) AS involuntary_switches
  FROM process_usage AS u JOIN load AS l ON u.process_id = l.process_id AND u.ts_ns BETWEEN l.begin_ns AND l.end_ns
  HAVING count(*) >= 2),
own AS (
  SELECT s.id, s.stack_id, s.weight_ns
  FROM sample AS s JOIN load AS l ON s.thread_id = l.thread_id AND s.ts_ns BETWEEN l.begin_ns AND l.end_ns),
named AS (
  SELECT o.id, o.weight_ns,
    arg_min(f.function, CASE WHEN f.kind = 'python' THEN st.depth ELSE 1000000 + st.depth END) AS function
  FROM own AS o LEFT JOIN stack AS st ON st.stack_id = o.stack_id LEFT JOIN frame AS f ON f.id = st.frame_id GROUP BY ALL),
sampled AS (
  SELECT coalesce(function, '') AS function, sum(weight_ns) AS ns, CAST(sum(sum(weight_ns)) OVER () AS BIGINT) AS thread_cpu_ns
  FROM named GROUP BY 1 ORDER BY ns DESC, 1 LIMIT 1),
copied AS (
  SELECT count(*) AS copies, coalesce(CAST(sum(c.bytes) AS BIGINT), 0) AS copied_bytes,
    coalesce(CAST(sum(c.bytes) FILTER (c.host_memory = 'pageable') AS BIGINT), 0) AS pageable_bytes,
    coalesce(CAST(sum(c.end_ns - c.begin_ns) AS BIGINT), 0) AS copy_ns,
    max(c.bytes * 1e9 / (c.end_ns - c.begin_ns)) FILTER (c.bytes >= 1000000 AND c.end_ns > c.begin_ns) AS best_copy_rate
  FROM copy AS c JOIN load AS l ON c.begin_ns BETWEEN l.begin_ns AND l.end_ns WHERE c.direction = 'host_to_device')
SELECT l.*, u.*, s.function, s.thread_cpu_ns, s.ns / nullif(s.thread_cpu_ns, 0) AS function_share, c.*
FROM load AS l CROSS JOIN copied AS c LEFT JOIN usage AS u ON true LEFT JOIN sampled AS s ON true;

-- question: logit_rows
-- Rows of logits that the steps of each stage make.
-- Per step, with its mean size. The rows are the side of the product that is not the vocabulary, the larger of the two.
SELECT w.stage, sum(least(g.m, g.n) * g.batch * w.gemm_calls) / any_value(s.steps) AS rows_per_step,
  any_value(s.batch) AS batch, any_value(s.tokens) AS tokens
FROM work_sum AS w JOIN gemm AS g ON g.id = w.gemm_id
JOIN (SELECT stage, count(*) AS steps, avg(batch) AS batch, avg(tokens) AS tokens FROM step GROUP BY stage) AS s USING (stage)
WHERE w.in_step AND w.gemm_calls > 0 AND (w.op = 'lm_head' OR w.op LIKE '%.lm_head' OR w.op = 'logits')
GROUP BY w.stage;

-- question: rank_steps
-- Steps of the ranks of a job, with and without their collectives.
-- A step begins where the one before it on its thread has ended, if that is later.
WITH ordered AS (
  SELECT s.*, p.rank, greatest(s.begin_ns, coalesce(lag(s.end_ns) OVER (PARTITION BY s.thread_id ORDER BY s.begin_ns), 0)) AS from_ns
  FROM step AS s JOIN process AS p ON p.id = s.process_id
  WHERE p.rank IS NOT NULL),
collective AS (
  SELECT a.step_id, sum(k.end_ns - k.begin_ns) AS ns
  FROM kernel AS k JOIN attribution AS a ON a.kernel_id = k.id
  WHERE a.step_id IS NOT NULL AND (k.name LIKE '%nccl%' OR k.name LIKE '%rccl%' OR k.name LIKE '%all_reduce%' OR k.name LIKE '%cross_device_reduce%')
  GROUP BY a.step_id)
SELECT o.stage, o.number, o.rank, CAST(coalesce(c.ns, 0) AS BIGINT) AS collective_ns,
  CAST(greatest(o.end_ns - o.from_ns - coalesce(c.ns, 0), 0) AS BIGINT) AS own_ns
FROM ordered AS o LEFT JOIN collective AS c ON c.step_id = o.id
WHERE o.stage NOT IN ('load', 'warm-up')
ORDER BY ALL;

-- question: stage_allocations
-- Device memory that is allocated and freed inside steps.
-- A caching allocator takes what it needs in the first steps: these do not count. Memory of pools is not given back to the
-- device, so it is cheap.
WITH later AS (SELECT * FROM step WHERE number > 0 AND stage NOT IN ('load', 'warm-up')),
moments AS (
  SELECT process_id, begin_ns AS at_ns, bytes, 1 AS taken FROM allocation
  WHERE kind IN ('device', 'managed', 'segment') AND device_id IS NOT NULL
  UNION ALL
  SELECT process_id, end_ns, 0, 0 FROM allocation
  WHERE kind IN ('device', 'managed', 'segment') AND device_id IS NOT NULL AND end_ns IS NOT NULL),
placed AS (
  SELECT s.id, s.stage, m.taken, m.bytes
  FROM moments AS m ASOF JOIN later AS s ON m.process_id = s.process_id AND m.at_ns >= s.begin_ns
  WHERE m.at_ns < s.end_ns),
sums AS (
  SELECT stage, count(DISTINCT id) AS steps_allocating, CAST(sum(taken) AS BIGINT) AS allocations,
         CAST(sum(1 - taken) AS BIGINT) AS releases, CAST(sum(bytes) AS BIGINT) AS bytes
  FROM placed GROUP BY stage),
calls AS (
  SELECT s.stage, CAST(sum(a.end_ns - a.begin_ns) AS BIGINT) AS ns
  FROM (SELECT * FROM api WHERE regexp_matches(name, '(cudaMalloc|cuMemAlloc|cudaFree|cuMemFree|hipMalloc|hipFree)')
          AND NOT contains(name, 'Async') AND NOT contains(name, 'Host')) AS a
  ASOF JOIN later AS s ON a.thread_id = s.thread_id AND a.begin_ns >= s.begin_ns
  WHERE a.begin_ns < s.end_ns GROUP BY s.stage)
SELECT l.stage, count(*) AS steps, coalesce(any_value(x.steps_allocating), 0) AS steps_allocating,
  coalesce(any_value(x.allocations), 0) AS allocations, coalesce(any_value(x.releases), 0) AS releases,
  coalesce(any_value(x.bytes), 0) AS bytes, any_value(c.ns) AS calls_ns
FROM later AS l LEFT JOIN sums AS x ON x.stage = l.stage LEFT JOIN calls AS c ON c.stage = l.stage
GROUP BY l.stage ORDER BY min(l.begin_ns);

-- question: step_transfers
-- Copies and collectives of steps.
-- A copy belongs to the latest step of its thread that had begun when it was asked for, if that was still open.
WITH asked AS (
  SELECT c.begin_ns, c.end_ns, c.device_id, c.bytes, c.thread_id, coalesce(c.launch_begin_ns, c.begin_ns) AS at_ns,
         CAST(coalesce(c.host_memory = 'pageable', false) AS BIGINT) AS pageable
  FROM copy AS c
  WHERE c.direction IN ('host_to_device', 'device_to_host', 'peer')),
own AS (SELECT * FROM step)
SELECT s.stage, a.device_id, a.begin_ns, a.end_ns, a.bytes, a.pageable, CAST(0 AS BIGINT) AS collective
FROM asked AS a ASOF JOIN own AS s ON a.thread_id = s.thread_id AND a.at_ns >= s.begin_ns
WHERE a.at_ns <= s.end_ns AND s.stage NOT IN ('load', 'warm-up')
UNION ALL
SELECT p.stage, k.device_id, k.begin_ns, k.end_ns, 0, 0, 1
FROM kernel AS k JOIN attribution AS p ON p.kernel_id = k.id
WHERE p.step_id IS NOT NULL AND p.stage NOT IN ('load', 'warm-up')
  AND (k.name LIKE '%nccl%' OR k.name LIKE '%rccl%' OR k.name LIKE '%all_reduce%' OR k.name LIKE '%cross_device_reduce%')
ORDER BY 2, 3;

-- question: token_steps
-- Steps of each thread in order, by whether they make tokens.
-- kind: 0 decode, 1 mixed, 2 prefill, 3 another stage.
SELECT thread_id, begin_ns, end_ns, coalesce(batch, 0) AS batch, coalesce(context, 0) AS context,
  CAST(CASE stage WHEN 'decode' THEN 0 WHEN 'mixed' THEN 1 WHEN 'prefill' THEN 2 ELSE 3 END AS BIGINT) AS kind
FROM step ORDER BY thread_id, begin_ns;
