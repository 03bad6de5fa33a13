#!/usr/bin/env bash
# record --modules and --stacks python on PyTorch: the same results as without, names of modules, lines of launches, what a
# launch costs. python_modules.sh LLMPROF_BIN_FOLDER
set -u
here=$(cd "$(dirname "$0")" && pwd)
bin=$1
out=$(mktemp -d)
cd "$out"
program="$here/python_modules.py"
quiet="--no-peaks --no-host"
echo "none     $(timeout 40 python3 "$program" llama launches graph 2>&1 | tail -1)"
echo "default  $(timeout 40 "$bin/llmprof" record -q $quiet -o default -- python3 "$program" launches 2>&1 | tail -1)"
echo "stacks   $(timeout 40 "$bin/llmprof" record -q $quiet --stacks python -o stacks -- python3 "$program" launches 2>&1 | tail -1)"
echo "both     $(timeout 40 "$bin/llmprof" record -q $quiet --stacks python,native -o both -- python3 "$program" launches 2>&1 | tail -1)"
echo "modules  $(timeout 60 "$bin/llmprof" record $quiet --modules --stacks python -o modules -- \
  python3 "$program" llama launches graph compile 2>tally | tail -1)"
tail -12 tally
ask() { timeout 20 "$bin/llmprof" query modules "$1" 2>&1 | head -${2:-20}; }
ask "select count(*) as ranges, count(distinct name) as names from range where category = 'module'"
ask "select distinct name from range where category = 'module' and (name like 'layers.0%' or name not like 'layers%') order by name" 30
ask "select count(*) as kernels, count(stack_id) as with_stack, count(graph_node_id) as in_graph from kernel"
ask "select count(*) as nodes, count(stack_id) as with_stack from graph_node"
ask "select f.function, f.file, f.line, count(*) as launches from kernel k join stack s on s.stack_id = k.stack_id and s.depth = 0 join frame f on f.id = s.frame_id group by all order by launches desc limit 6" 12
ask "select s.depth, f.function, f.file, f.line from stack s join frame f on f.id = s.frame_id where s.stack_id = (select stack_id from kernel where name like '%gemm%' or name like '%cutlass%' or name like '%nvjet%' order by begin_ns limit 1) order by s.depth" 30
ask "select * from note" 10
ask "select * from loss" 20

# Training: results, memory and steps as without; modules of the backward pass, which the engine's thread launches.
echo "train    $(timeout 60 python3 "$program" train 2>&1 | tail -1)"
echo "modules  $(timeout 60 "$bin/llmprof" record -q $quiet --modules -o train -- python3 "$program" train 2>&1 | tail -1)"
ask_train() { timeout 20 "$bin/llmprof" query train "$1" 2>&1 | head -${2:-20}; }
echo "expected: forward, backward and optimizer, 8 steps each"
ask_train "select stage, source, count(*) as steps, sum(kernels) as kernels from step group by all order by stage"
ask_train "select stage, count(*) as kernels, count(module) as in_modules from attribution group by all order by stage"
ask_train "select stage, module, count(*) as kernels, sum(k.end_ns - k.begin_ns) as ns from attribution a join kernel k on k.id = a.kernel_id where a.stage = 'backward' group by all order by module" 40
ask_train "select t.stage, t.module, count(*) as calls from range_time t where t.kind = 'module' and t.module like 'layers.0%' group by all order by 1, 2" 20

# What it costs an eager decode: at most 3 % over the same recording without it.
timeout 500 python3 "$here/../../perf/modules_cost.py" "$bin"
