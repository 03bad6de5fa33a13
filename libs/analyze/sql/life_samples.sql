-- title: What stack samples outside of steps tell of the program's life
-- unit: ns
-- One row per sample, by time. A frame tells a phase by its function or file; of a stack the innermost such frame counts,
-- but what a library does while it is imported or loaded is importing or loading. label: which compiler, package or
-- function. Frames that only run compiled models tell nothing.
WITH told AS (
  SELECT id, function, file, kind = 'python' AS python, kind = 'kernel' AS kernel, CASE
    WHEN regexp_matches(function, '^(Py_FinalizeEx|exit|__run_exit_handlers|_dl_fini|_run_exitfuncs|_exit_function|__cxa_finalize)$') THEN 'exit'
    WHEN regexp_matches(function, '^(cu(Stream|Ctx|Event)Synchronize|cuda(Device|Stream|Event)Synchronize)') THEN 'gpu_wait'
    WHEN regexp_matches(function, '^cuMemcpyHtoD') THEN 'host_to_device'
    WHEN function IN ('Module.to', 'Module.cuda') AND EXISTS (SELECT 1 FROM copy WHERE direction = 'host_to_device') THEN 'host_to_device'
    WHEN regexp_matches(function, 'BFCAllocator::(Extend|RegionManager)|^(cudaMalloc|cudaHostAlloc|cuMemAlloc|cuMemHostAlloc|cuMemHostRegister|cuMemCreate)') THEN 'memory'
    WHEN regexp_matches(file, 'libcupti') THEN 'recording'
    WHEN regexp_matches(file, 'libnvrtc|libnvJitLink|libnvidia-(ptxjitcompiler|nvvm)|/libtriton\.so|/triton/(compiler|language)/|/triton/backends/[a-z]+/compiler\.py|/triton/runtime/build\.py')
      OR (kind <> 'python' AND regexp_matches(function, '^(llvm|mlir)::|^nvrtcCompile|^xla::.*(Compile|HloPass|BufferAssign)'))
      OR regexp_matches(file, '/jax/_src/(compiler|interpreters/mlir|interpreters/partial_eval)\.py')
      OR regexp_matches(file, '/torch/_dynamo/(convert_frame|symbolic_convert|output_graph|bytecode_|guards|variables/|backends/)|/torch/_functorch/(partitioners|_aot_autograd/(collect|graph|dispatch|traced|autograd_cache|jit))|/torch/fx/(passes|experimental)/|/torch/fx/(interpreter|graph)\.py|/torch/utils/cpp_extension\.py')
      OR (regexp_matches(file, '/torch/_inductor/')
          AND NOT regexp_matches(file, '/torch/_inductor/(output_code|utils|cudagraph|runtime/triton_heuristics)')
          AND NOT (file LIKE '%/codecache.py' AND function LIKE '%__call__'))
      OR regexp_matches(function, '^CachingAutotuner\.(precompile|_precompile|_make_launchers|autotune|benchmark)') THEN 'compile'
    WHEN regexp_matches(function, '^(cuInit|cuCtxCreate|cuDevicePrimaryCtxRetain|cu(Module|Library)Load|cuda(GetDeviceCount|SetDevice)|__cudaRegister|cublas(Lt)?Create|cudnnCreate|nvmlInit)')
      OR (function = '_lazy_init' AND file LIKE '%/torch/cuda/%') THEN 'gpu_start'
    WHEN regexp_matches(file, '/tokenizers/|tokenizers\.abi|/transformers/tokenization|/sentencepiece|/tiktoken')
      OR (regexp_matches(function, '(?i)tokeniz(e|er|ing)')  -- but not the tokenizer of Python's own parser
          AND NOT regexp_matches(function, 'PyTokenizer') AND NOT regexp_matches(file, '/lib/python[0-9.]+/[a-z_]+\.py$')) THEN 'tokenize'
    WHEN regexp_matches(file, '/safetensors/|safetensors_rust|/torch/(serialization|_weights_only_unpickler)\.py|/gguf/|/numpy/lib/_?npyio|/transformers/core_model_loading')
      OR regexp_matches(function, '(?i)(load|read)_?(checkpoint|weights|pretrained|state_dict|tensors|model)|gguf_init|llama_model_load')
      OR (function LIKE '%from\_pretrained%' ESCAPE '\' AND regexp_matches(file, '/(modeling_|models/auto/auto_factory)')) THEN 'weights'
    WHEN regexp_matches(file, '/torch/nn/init\.py') OR regexp_matches(function, '(?i)init_?(weights|param)|reset_parameters|build_from_(random|descriptor|config)')
      OR (function LIKE '%\_\_init\_\_' ESCAPE '\' AND regexp_matches(file, '/torch/nn/modules/|/transformers/models/')) THEN 'build'
    WHEN regexp_matches(file, '/torch/utils/data/|/site-packages/datasets/') THEN 'data'
    WHEN regexp_matches(file, '^<frozen importlib|/importlib/') OR function LIKE 'PyImport_%' OR function LIKE '\_PyImport%' ESCAPE '\' THEN 'imports'
    WHEN regexp_matches(function, '^(_?Py_Initialize|Py_InitializeFromConfig|pyinit_)') OR regexp_matches(file, '/site\.py$|^<frozen site>|^<frozen getpath>') THEN 'start'
    WHEN regexp_matches(file, '/ld-(linux|musl)') THEN 'libraries' END AS phase
  FROM frame),
known AS MATERIALIZED (  -- ids instead of names in what follows: there are far more frames on stacks than functions
  SELECT *, phase IS NOT NULL AND phase <> 'libraries' AND function <> '<module>' AS tells,
    phase IS NOT DISTINCT FROM 'libraries' AS linker, phase IS NOT DISTINCT FROM 'imports' AS imports,
    function IS NOT DISTINCT FROM '<module>' AND phase IS NOT NULL AS begins,
    function IS NOT DISTINCT FROM '<module>' AND regexp_matches(file, '(site|dist)-packages/') AS package,
    python AND function <> '<module>' AS python_function, NOT kernel AND function NOT LIKE '%+0x%' AS named
  FROM told),
steps AS (  -- and one before all others, so that every sample has a step before it
  SELECT process_id, begin_ns, end_ns FROM step
  UNION ALL SELECT id, -9223372036854775807, -9223372036854775807 FROM process),
outside AS MATERIALIZED (
  SELECT s.id, s.process_id, s.main, s.ts_ns, s.weight_ns, s.stack_id, s.truncated FROM (
    SELECT a.*, t.process_id, t.tid = p.pid AS main
    FROM sample AS a JOIN thread AS t ON t.id = a.thread_id JOIN process AS p ON p.id = t.process_id) AS s
  ASOF JOIN steps AS st ON s.process_id = st.process_id AND s.ts_ns > st.begin_ns
  WHERE s.ts_ns > st.end_ns),
framed AS (
  SELECT o.stack_id, st.depth, k.id, k.tells, k.linker, k.imports, k.begins, k.package, k.python_function, k.named
  FROM (SELECT DISTINCT stack_id FROM outside) AS o JOIN stack AS st USING (stack_id) JOIN known AS k ON k.id = st.frame_id),
understood AS (
  SELECT stack_id, arg_min(id, depth) FILTER (tells) AS teller, min(depth) FILTER (tells) AS phase_depth,
    max(depth) FILTER (linker) AS linker_depth, bool_or(imports) AS importing, bool_or(begins) AS library_begins,
    arg_max(id, depth) FILTER (package) AS package, arg_min(id, depth) FILTER (python_function) AS python_function,
    arg_min(id, depth) FILTER (named) AS leaf
  FROM framed GROUP BY stack_id),
named AS (
  SELECT u.stack_id, t.function, t.file, p.file AS package, y.function AS python_function, l.function AS leaf, CASE
    WHEN t.phase = 'exit' THEN t.phase
    WHEN library_begins OR (importing AND linker_depth > phase_depth) THEN 'imports'
    WHEN t.phase IS NULL OR linker_depth > phase_depth THEN CASE WHEN linker_depth IS NOT NULL THEN 'libraries' END
    ELSE t.phase END AS said
  FROM understood AS u LEFT JOIN known AS t ON t.id = u.teller LEFT JOIN known AS p ON p.id = u.package
  LEFT JOIN known AS y ON y.id = u.python_function LEFT JOIN known AS l ON l.id = u.leaf)
SELECT o.process_id, o.main::BIGINT AS main, o.ts_ns, o.weight_ns, o.truncated::BIGINT AS truncated,
  coalesce(n.said, '') AS phase,
  CASE
    WHEN n.said = 'imports' THEN coalesce(nullif(regexp_extract(n.package, '(?:site|dist)-packages/([^/]+)', 1), ''), '')
    WHEN n.said = 'compile' THEN CASE
      WHEN regexp_matches(n.file, 'libnvrtc') OR n.function LIKE 'nvrtc%' THEN 'NVRTC'
      WHEN regexp_matches(n.file, 'nvJitLink') THEN 'nvJitLink'
      WHEN regexp_matches(n.file, 'libnvidia') THEN 'the driver (PTX)'
      WHEN regexp_matches(n.file, 'triton') AND NOT regexp_matches(n.file, 'torch/_inductor') THEN 'Triton'
      WHEN regexp_matches(n.file, '(?i)jax|xla') THEN 'XLA'
      WHEN regexp_matches(n.file, '/torch/') THEN 'torch.compile' ELSE 'LLVM' END
    WHEN n.said IN ('memory', 'gpu_start', 'gpu_wait', 'host_to_device', 'recording') THEN n.function
    ELSE coalesce(n.python_function, n.leaf, '') END AS label
FROM outside AS o LEFT JOIN named AS n ON n.stack_id = o.stack_id
ORDER BY o.ts_ns, o.id;
