"""What is held against what, program by program. A case is a name, the packages it needs and a function; add one by
writing a program and a row of CASES."""
import collections
import statistics

import load_cases


def flops(products):
    return sum(2 * m * n * k * calls for (m, n, k), calls in products.items())


def sides(products):
    """Products by the lengths of their sides, whatever is called m, n and k."""
    counted = collections.Counter()
    for shape, calls in products.items():
        counted[tuple(sorted(shape))] += calls
    return counted


def says_so(case, run):
    """The text report's sentence of what was seen has the numbers of the tables."""
    products = run.query("select count(*) as calls from gemm")[0]["calls"]
    threads = run.query("select count(*) as threads from thread")[0]["threads"]
    ranges = run.report["coverage"]["ranges"]
    sentence = (f"1 of 1 process instrumented; {threads} thread{'s' * (threads != 1)}, {products} kernels and BLAS calls, {ranges} ranges, "
                f"{products} matrix products.")
    case.hold("sentence of what was seen against the tables", sentence in run.sentences, sentence)
    cost = run.report["recording_cost"]
    case.equal("BLAS calls that the collector counted against those in the run", cost["gemm_events"], products)


def whole_life(case, run, package):
    wall, life = run.report["coverage"]["wall_ns"], run.report["life"]
    case.hold("wall time is that of the process as it was watched from outside", wall >= 0.95 * run.process["wall_ns"],
              f"{wall / 1e9:.2f} of {run.process['wall_ns'] / 1e9:.2f} s")
    case.equal("phases of the program's life, added up, against its life", sum(phase["time_ns"] for phase in life["phases"]),
               life["time_ns"])
    case.equal("its life against the wall time", life["time_ns"], wall)
    imports = [phase for phase in life["phases"] if phase["name"] == "imports"]
    case.hold("imports are a phase of it, with the package as evidence", bool(imports) and package in imports[0]["evidence"],
              imports[0]["evidence"] if imports else "none")


NOTHING_SEEN = ("No BLAS call, kernel or range was seen: a program on the CPU, or one whose calls llmprof cannot see (a statically "
                "linked BLAS")


def unknown_model(case, run):
    model = run.report["model"]
    case.hold("the model, which nothing declares, is called unknown, with the reason",
              model["family"] is None and bool(model["why"]) and
              ("Model unknown:" in run.sentences or NOTHING_SEEN in run.sentences))
    case.hold("MFU, MBU and floor, which need it, are unknown in every stage",
              all(stage[key] is None for stage in run.stages.values() for key in ("mfu", "mbu", "floor_ns", "flops")))


def torch_training(case):
    alone = case.alone("torch_train.py", "--count")
    run = case.recorded("torch_train.py")
    case.same_output(alone, run, ["losses"])
    case.whole(run, alone)
    says_so(case, run)
    unknown_model(case, run)
    own, seen = run.own, sides(run.products())
    # Of every linear layer: its output, the gradient of its input, the gradient of its weights.
    linear = collections.Counter()
    for inputs, outputs in own["linears"]:
        linear[tuple(sorted((inputs, outputs, own["rows"])))] += 3 * own["steps"]
    case.equal("sgemm_ calls of the linear layers, by shape, against the model's layers",
               {shape: seen[shape] for shape in linear}, dict(linear))
    counted = alone["flops_of_a_step"]
    case.equal("FLOPs of these calls against torch's FlopCounterMode",
               flops({shape: seen[shape] for shape in linear}),
               own["steps"] * (counted["aten.mm"] + counted["aten.addmm"]))
    attention = own["attention"]
    products = own["steps"] * attention["layers"] * attention["heads"] * 7  # 2 forward, 5 backward
    case.equal("FLOPs of all other calls against attention by hand, which torch's counter leaves out on a CPU",
               flops({shape: calls for shape, calls in seen.items() if shape not in linear}),
               products * 2 * attention["length"] ** 2 * attention["size"])
    who = run.query("select function, library, count(distinct thread_id) as threads from gemm group by all")
    case.hold("functions, library and threads of the calls: sgemm_ of libtorch_cpu, from torch's threads",
              len(who) == 1 and who[0]["function"] == "sgemm_" and "libtorch_cpu" in who[0]["library"]
              and who[0]["threads"] == own["torch_threads"],
              [(row["function"], row["library"].split("/")[-1], row["threads"]) for row in who])
    span = run.query("select (max(end_ns) - min(begin_ns)) / 1e9 as span from gemm")[0]["span"]
    case.hold("first to last call lies in the program's own time of its loop, s", span <= own["elapsed_s"] * 1.002,
              f"{span:.3f} of {own['elapsed_s']:.3f}")
    whole_life(case, run, "torch")
    names = set(run.stages)
    case.equal("stages told from the products of a loop without annotation: those of training", names, {"forward", "backward"})
    case.equal("their steps against the program's", {stage["steps"] for stage in run.stages.values()}, {own["steps"]})
    headline = run.report["diagnosis"]["headline"]
    case.hold("the headline of the diagnosis does not speak of tokens",
              "decode" not in headline.lower() and "prefill" not in headline.lower(), headline)


def module_ranges(case, run, passes, called):
    """`passes`: stage -> how often each module is called in it."""
    rows = run.query("select t.stage, r.name, count(*) as calls from range r join range_time t on t.range_id = r.id "
                     "where r.category = 'module' group by all")
    case.equal("modules recorded by --modules, each with its calls in each stage, against the program's named_modules()",
               sorted((row["stage"], row["name"], row["calls"]) for row in rows),
               sorted((stage, name, calls) for stage, calls in passes.items() for name in called))


def declared_steps(case, run, expected):
    rows = run.query("select stage, batch, tokens, context, source from step order by begin_ns")
    case.equal("steps by calls of the model, with batch, tokens and context, against the program's",
               [(row["stage"], row["batch"], row["tokens"], row["context"]) for row in rows], expected)
    case.hold("their source is the program", all(row["source"] == "declared" for row in rows))


def torch_modules(case):
    alone = case.alone("torch_train.py", "--count")
    run = case.recorded("torch_train.py", options=("--modules",))
    case.same_output(alone, run, ["losses"])
    own = run.own
    called = set(own["modules"]) - {"", "layers"}  # the list of layers is no call
    module_ranges(case, run, {"forward": own["steps"], "backward": own["steps"]}, called)
    size = (own["attention"]["heads"] // 4, own["attention"]["length"], own["attention"]["length"])  # 4 heads
    declared_steps(case, run, [("forward", *size), ("backward", *size), ("optimizer", None, None, None)] * own["steps"])
    row = run.query("select count(*) as calls, count(*) filter (a.stage in ('forward', 'backward') and a.module is not null) as held "
                    "from kernel k join attribution a on a.kernel_id = k.id "
                    "where k.thread_id in (select thread_id from range where category = 'module')")[0]
    case.equal("products in modules of forward and backward passes against all that the thread made", row["held"], row["calls"])


def generation(case):
    alone = case.alone("transformers_generate.py")
    run = case.recorded("transformers_generate.py")
    own = run.own
    case.same_output(alone, run, ["tokens"])
    case.whole(run, alone)
    says_so(case, run)
    unknown_model(case, run)
    products = run.products()
    steps = own["passes"] - 1
    expected = collections.Counter()
    for name, inputs, outputs in own["linears"]:  # of the prompt only the last token goes through the head
        expected[outputs, 1 if name == "lm_head" else own["prompt"], inputs] += 1
        expected[outputs, 1, inputs] += steps
    case.equal("sgemm_ calls of the linear layers, by shape, against the model's layers and passes",
               {shape: calls for shape, calls in products.items() if own["head_size"] not in shape}, dict(expected))
    stages = run.stages
    if not case.equal("stages, passes and tokens against the program's",
                      {name: (stage["steps"], stage["tokens"]) for name, stage in stages.items()},
                      {"prefill": (1, own["prompt"]), "decode": (steps, steps)}):
        return
    case.equal("FLOPs of both stages against all the calls", stages["prefill"]["flops_shapes"] + stages["decode"]["flops_shapes"],
               flops(products))
    case.hold("time to first token is at most the program's own of its first pass, s",
              stages["prefill"]["ttft_ns"] / 1e9 <= own["prefill_s"] * 1.002,
              f"{stages['prefill']['ttft_ns'] / 1e9:.4f} of {own['prefill_s']:.4f}")
    case.within("time per token, the median, against the program's own, s", stages["decode"]["tpot_p50_ns"] / 1e9,
                statistics.median(own["token_s"]), 0.20)
    case.within("time of decode against the program's own, s", stages["decode"]["time_ns"] / 1e9, own["decode_s"], 0.10,
                0.02)
    case.hold("stages that nobody declared are marked as inferred",
              all(stage["source"] == "inferred" for stage in stages.values()) and "* decode: inferred" in run.sentences)
    whole_life(case, run, "torch")
    rule = next(rule for rule in run.report["diagnosis"]["rules"] if rule["rule"] == "load_time")
    case.hold("the rule load_time says how long the program took to its first step", "passed 0 ns" not in rule["why"], rule["why"])


def generation_modules(case):
    alone = case.alone("transformers_generate.py")
    run = case.recorded("transformers_generate.py", options=("--modules",))
    own = run.own
    case.same_output(alone, run, ["tokens"])
    called = {name.removeprefix("model.") for name in own["modules"]} - {"", "model", "layers"}
    steps = own["passes"] - 1
    module_ranges(case, run, {"prefill": 1, "decode": steps}, called)
    declared_steps(case, run, [("prefill", 1, own["prompt"], own["prompt"]),
                               *(("decode", 1, 1, own["prompt"] + 1 + i) for i in range(steps))])
    model = run.report["model"]
    case.equal("the model and its parameters, as declared through --modules, against the program's",
               (model["source"], model["family"], model["parameters"]), ("declared", "llama", own["parameters"]))
    decode = run.stages["decode"]
    case.within("FLOPs of decode by the model against those by shapes", decode["flops"], decode["flops_shapes"], 0.02)
    heads = [row["calls"] for row in run.report["operators"] if row["name"] == "lm_head" and row["stage"] == "decode"]
    case.equal("calls of lm_head in decode, by --modules, against the passes of the program", heads, [own["passes"] - 1])
    share = max(row["share"] for row in run.report["unmatched"] if row["stage"] == "decode")
    case.hold("part of decode that no module holds is less than half", share < 0.5, f"{share:.0%}")


def batching_requests(case):
    alone = case.alone("transformers_batching.py")
    run = case.recorded("transformers_batching.py", options=("--requests",))
    own = run.own
    case.same_output(alone, run, ["tokens"])
    case.hold("the hook in continuous batching said so, and nothing of a failure",
              [row["text"].split(":")[1] for row in run.query("select text from note where subject = 'requests'")] ==
              [" hooks in ContinuousBatchProcessor, RequestState, Scheduler, OffloadingManager, OutputRouter"])
    steps = run.query("select s.id, s.end_ns - s.turn_ns as step, sum(m.time_ns) as parts, sum(m.tokens) as tokens "
                      "from step as s left join step_member as m on m.step_id = s.id group by all")
    case.equal("steps against the model's passes", len(steps), own["passes"])
    case.hold("parts of requests and of the engine, added up, are the step, in every step, to the nanosecond",
              all(row["parts"] == row["step"] for row in steps), f"{len(steps)} steps")
    case.equal("tokens of the members of all steps against those that the model was called with",
               sum(row["tokens"] for row in steps), own["computed"])
    requests = {row["name"]: row for row in run.query(
        "select q.name, q.prompt_tokens, q.output_tokens, q.status, q.cached_tokens, q.preemptions, sum(m.tokens) as tokens, "
        "count(*) filter (m.sampled) as sampled from request as q join step_member as m on m.request_id = q.id group by all")}
    case.equal("prompts of the requests against the program's",
               {name: row["prompt_tokens"] for name, row in requests.items()}, own["prompts"])
    made = {name: len(tokens) for name, tokens in own["tokens"].items()}
    for key, what in (("output_tokens", "output tokens"), ("sampled", "steps that give a token")):
        case.equal(f"{what} of the requests against the program's", {name: row[key] for name, row in requests.items()}, made)
    case.hold("every request ended: by its length, or by the token that ends it",
              all(row["status"] == ("length" if own["tokens"][name][-1] != 7 else "finished")
                  for name, row in requests.items()))
    whole = {name: row for name, row in requests.items() if not row["preemptions"]}
    case.equal("tokens computed of requests that were not preempted: the prompt less what others had left, and the output",
               {name: row["tokens"] for name, row in whole.items()},
               {name: own["prompts"][name] - row["cached_tokens"] + made[name] - 1 for name, row in whole.items()})
    case.hold("some were preempted and computed more, and some found a prefix in the cache",
              0 < len(whole) < len(requests) and any(row["cached_tokens"] for row in requests.values()) and
              all(row["tokens"] >= own["prompts"][name] - row["cached_tokens"] + made[name] - 1
                  for name, row in requests.items()),
              f"{len(requests) - len(whole)} preempted")
    case.equal("the model and its parameters, as declared by the hook, against the program's",
               (run.report["model"]["source"], run.report["model"]["parameters"]), ("declared", own["parameters"]))


def numpy_products(case):
    alone = case.alone("numpy_chain.py")
    run = case.recorded("numpy_chain.py")
    own = run.own
    case.same_output(alone, run, ["result"])
    case.whole(run, alone)
    says_so(case, run)
    unknown_model(case, run)
    rows = run.query("select function, sum(batch) as calls, sum(2 * m * n * k * batch) as flops, min(library) as library "
                     "from gemm group by function")
    case.equal("BLAS calls by function against the program's own count",
               {row["function"]: int(row["calls"]) for row in rows},
               {f"scipy_cblas_{name}64_": calls for name, calls in own["calls"].items()})
    case.equal("FLOPs by function against the program's own count",
               {row["function"]: int(row["flops"]) for row in rows},
               {f"scipy_cblas_{name}64_": value for name, value in own["flops"].items()})
    case.hold("the library of these calls is the OpenBLAS that numpy brings",
              all("openblas" in row["library"] for row in rows), {row["library"].split("/")[-1] for row in rows})
    spent = run.query("select sum(end_ns - begin_ns) / 1e9 as spent from gemm")[0]["spent"]
    case.hold("time in these calls is at most the program's own time of its loop, s", spent <= own["elapsed_s"] * 1.002,
              f"{spent:.3f} of {own['elapsed_s']:.3f}")
    case.hold("products that repeat are steps, and not called prefill or decode", set(run.stages) <= {"steps", "other"},
              ", ".join(run.stages))
    headline = run.report["diagnosis"]["headline"]
    case.hold("the headline of the diagnosis does not speak of tokens",
              "decode" not in headline.lower() and "prefill" not in headline.lower(), headline)


def numpy_exit(case):
    run = case.recorded("numpy_chain.py", "7", status=7)
    case.equal("exit status in the run against the program's", run.query("select exit_status from process"), [{"exit_status": 7}])


def numpy_processes(case):
    alone = case.alone("numpy_pool.py")
    run = case.recorded("numpy_pool.py")
    own = run.own
    case.same_output(alone, run, ["sums"])
    rows = run.query("select p.pid, count(g.id) as calls from process p left join thread t on t.process_id = p.id "
                     "left join gemm g on g.thread_id = t.id group by p.pid")
    case.equal("BLAS calls of each process against the program's own", sorted((row["pid"], row["calls"]) for row in rows),
               sorted(zip(own["pids"], own["products"])))
    parents = {row["pid"]: row["parent_pid"] for row in run.query("select pid, parent_pid from process")}
    case.hold("workers are the parent's children in the run", all(parents[pid] == own["pid"] for pid in own["pids"][1:]))


def jax_decode(case):
    alone = case.alone("jax_decode.py")
    run = case.recorded("jax_decode.py")
    case.same_output(alone, run, ["tokens", "square"])
    case.whole(run, alone, same_threads=False)  # XLA starts threads as it needs them
    says_so(case, run)
    unknown_model(case, run)
    coverage = run.report["coverage"]
    case.equal("what is seen of XLA's own products on a CPU: nothing, and no stage is made of it",
               (coverage["kernels"], coverage["gemms"], list(run.stages)), (0, 0, []))
    case.hold("the report says that nothing was seen, and why that may be",
              NOTHING_SEEN in run.sentences)
    case.hold("its headline says where its time went instead", "its main thread was on a CPU" in run.report["diagnosis"]["headline"],
              run.report["diagnosis"]["headline"])
    whole_life(case, run, "jax")
    compiled = [phase["evidence"] for phase in run.report["life"]["phases"] if phase["name"] == "compile"]
    case.hold("compilation by XLA is a phase of its life", bool(compiled) and "XLA" in compiled[0], compiled)
    case.hold("no advice to say the model, as its matrix products were not seen", "say the model (--model" not in run.sentences)
    told = " ".join(run.ask("report", run.path, "--full", "--model", "llama-3.2-1b").split())
    case.hold("with --model, too, the report does not speak of products that were seen", "The matrix products that were seen" not in told)


CASES = [
    ("numpy products", ["numpy"], numpy_products),
    ("numpy exit status", ["numpy"], numpy_exit),
    ("numpy processes", ["numpy"], numpy_processes),
    ("torch training", ["torch"], torch_training),
    ("torch --modules", ["torch"], torch_modules),
    ("transformers generation", ["torch", "transformers"], generation),
    ("transformers --modules", ["torch", "transformers"], generation_modules),
    ("transformers --requests", ["torch", "transformers"], batching_requests),
    ("jax decode", ["jax"], jax_decode),
    ("load: tokenizers", ["tokenizers"], load_cases.tokenizers),
    ("load: transformers' server", ["torch", "transformers", "accelerate"], load_cases.transformers_server),
    ("load: llama.cpp's server", [], load_cases.llama_server),
]
