"""Measures what PyTorch's own kernels take on this GPU, over sizes: `llmprof bench --for RUN` runs it.

    python3 _probe.py SPEC.json > rows.jsonl

The specification says which model and sizes, and which products and attention a program was seen to use. Everything that
decoders are commonly written with is called once per size, in one long sequence with products between, because a kernel
that is launched again and again finds its instructions and data in caches, and in a program it does not. Kernels are told
apart by an empty kernel between calls. Rows: docs/format/operator-tables.md, "Kernels of a framework".
"""
import json
import os
import statistics
import sys
import tempfile
import time

import torch
import torch.nn.functional as F

SEPARATOR = "spin_kernel"  # of torch.cuda._sleep
COLD_BYTES = 160 << 20     # weights rotate over so many bytes: three times the L2 of an H200
DEVICE = "cuda"
TYPES = {"bfloat16": torch.bfloat16, "float16": torch.float16, "float32": torch.float32}


def emit(row, **values):
    print(json.dumps(dict(row=row, **values)), flush=True)


def separate():
    torch.cuda._sleep(1)


# ---- what ran, from a trace


def traced(run):
    """Kernels in their order while run() runs: (name, blocks, threads, duration in ns). A lost record makes groups of
    different length, which the callers drop."""
    activities = [torch.profiler.ProfilerActivity.CUDA]
    with torch.profiler.profile(activities=activities) as profile:
        run()
        torch.cuda.synchronize()
    handle, path = tempfile.mkstemp(suffix=".json")
    os.close(handle)
    try:
        profile.export_chrome_trace(path)
        with open(path) as file:
            events = json.load(file)["traceEvents"]
    finally:
        os.unlink(path)
    kernels = []
    for event in events:
        if event.get("cat") != "kernel":
            continue
        args = event["args"]
        blocks = threads = 1
        for each in args["grid"]:
            blocks *= each
        for each in args["block"]:
            threads *= each
        kernels.append((float(event["ts"]), event["name"], blocks, threads, round(float(event["dur"]) * 1000)))
    kernels.sort(key=lambda kernel: kernel[0])
    return [kernel[1:] for kernel in kernels]


def groups(kernels):
    """Split at the separators."""
    out = []
    for kernel in kernels:
        if SEPARATOR in kernel[0]:
            out.append([])
        elif out:
            out[-1].append(kernel)
    return out


def typical(samples):
    """Several executions of one call: the kernels of the usual sequence, each with its median duration."""
    if not samples:
        return []
    shapes = [tuple((k[0], k[1]) for k in sample) for sample in samples]
    usual = max(set(shapes), key=shapes.count)
    kept = [sample for sample, shape in zip(samples, shapes) if shape == usual]
    return [(k[0], k[1], k[2], statistics.median(sample[i][3] for sample in kept)) for i, k in enumerate(kept[0])]


# ---- what decoders are written with


class Calls:
    """Calls on `rows` new tokens, as one prompt or as so many sequences with one token each. call(i) may use i to rotate
    over its data; each returns nothing."""

    def __init__(self, model, rows, decode, contexts):
        self.m, self.rows, self.decode = model, rows, decode
        self.batch, self.seq = (rows, 1) if decode else (1, rows)
        self.type = TYPES[model.get("dtype", "bfloat16")]
        self.contexts = contexts
        self.by_rows, self.by_context = {}, {}
        self.data()
        for add in (self.norms, self.rotary, self.caches, self.mlp, self.ends, self.small):
            add()

    def tensor(self, *shape, dtype=None):
        return torch.randn(*shape, device=DEVICE, dtype=torch.float32).to(dtype or self.type)

    def data(self):
        m = self.m
        self.x = self.tensor(self.batch, self.seq, m["hidden"])
        heads, kv, dim = m["heads"], m["kv_heads"], m["head_dim"]
        qkv = self.tensor(self.batch, self.seq, (heads + 2 * kv) * dim)
        self.q, self.k, self.v = qkv.split([heads * dim, kv * dim, kv * dim], -1)
        self.qh = self.q.view(self.batch, self.seq, heads, dim)
        self.kh = self.k.view(self.batch, self.seq, kv, dim)
        self.longest = self.seq + 64
        self.pos = torch.arange(self.seq, device=DEVICE)
        self.cos = self.tensor(self.longest, dim)

    def norm_of(self, x, weight):
        """As transformers writes RMSNorm."""
        h = x.to(torch.float32)
        h = h * torch.rsqrt(h.pow(2).mean(-1, keepdim=True) + 1e-5)
        return weight * h.to(x.dtype)

    def norms(self):
        m = self.m
        weight, head = self.tensor(m["hidden"]), self.tensor(m["head_dim"])
        shape = (m["hidden"],)
        last = self.x[:, -1:]
        self.by_rows["rms_norm"] = lambda i: F.rms_norm(self.x, shape, weight, 1e-5)
        self.by_rows["layer_norm"] = lambda i: F.layer_norm(self.x, shape, weight, weight, 1e-5)
        self.by_rows["norm"] = lambda i: self.norm_of(self.x, weight)
        q, k = self.qh.contiguous(), self.kh.contiguous()
        self.by_rows["norm of queries"] = lambda i: self.norm_of(q, head)
        self.by_rows["norm of keys"] = lambda i: self.norm_of(k, head)
        self.by_rows["norm of the last token"] = lambda i: F.rms_norm(last, shape, weight, 1e-5)
        other = self.x.clone()
        self.by_rows["residual"] = lambda i: self.x + other

    def rotated(self, x, cos, sin):
        half = x.shape[-1] // 2
        return x * cos + torch.cat([-x[..., half:], x[..., :half]], -1) * sin

    def rotary(self):
        m = self.m
        table = self.tensor(1, self.seq, m["head_dim"])
        flat, once = table[0], table[:, None]
        for name, x in (("queries", self.qh), ("keys", self.kh)):
            turned = x.transpose(1, 2)
            self.by_rows["rotary of " + name] = lambda i, x=turned: self.rotated(x, flat, flat)
            apart = x.contiguous().transpose(1, 2)  # products of their own
            self.by_rows["rotary of separate " + name] = lambda i, x=apart: self.rotated(x, once, once)
        self.by_rows["angles by position"] = lambda i: self.cos[self.pos]
        frequency = torch.randn(1, m["head_dim"] // 2, 1, device=DEVICE)
        places = self.pos[None, None, :].float()

        def angles(i):
            turns = (frequency.expand(1, -1, 1) @ places).transpose(1, 2)
            both = torch.cat((turns, turns), -1)
            return (both.cos() * 1.0).to(self.type), (both.sin() * 1.0).to(self.type)
        self.by_rows["angles"] = angles

    def caches(self):
        m, b = self.m, self.batch
        kv, dim, heads = m["kv_heads"], m["head_dim"], m["heads"]
        group = heads // kv
        cache = self.tensor(b, kv, self.longest, dim)
        new = self.tensor(b, kv, self.seq, dim)
        turned = self.v.reshape(b, self.seq, kv, dim).transpose(1, 2)
        self.by_rows["write keys"] = lambda i: cache.index_copy_(2, self.pos, new)
        self.by_rows["write values"] = lambda i: cache.index_copy_(2, self.pos, turned)
        flat, places = self.tensor(self.rows + 16, kv, dim), torch.arange(self.rows, device=DEVICE)
        rows = self.tensor(self.rows, kv, dim)
        self.by_rows["write pages"] = lambda i: flat.index_copy_(0, places, rows)
        self.by_rows["repeat keys"] = lambda i: new.repeat_interleave(group, 1)
        self.by_rows["repeat values"] = lambda i: turned.repeat_interleave(group, 1)
        spread = new[:, :, None].expand(b, kv, group, self.seq, dim)
        self.by_rows["expand keys"] = lambda i: spread.reshape(b, heads, self.seq, dim)
        mixed = self.tensor(b, heads, self.seq, dim)
        self.by_rows["join heads"] = lambda i: mixed.transpose(1, 2).reshape(b, self.seq, heads * dim)
        for tokens in self.contexts:  # of all sequences together
            each = max(1, tokens // b)
            past = self.tensor(b, kv, each, dim)
            self.context(tokens, "append keys", lambda i, past=past: torch.cat([past, new[:, :, -1:]], -2))
            pool, index = self.tensor(tokens + 16, kv, dim), torch.arange(tokens, device=DEVICE)
            self.context(tokens, "gather pages", lambda i, p=pool, x=index: p[x])
            keys = self.tensor(1, kv, tokens, dim)
            wide = keys[:, :, None].expand(1, kv, group, tokens, dim)
            self.context(tokens, "expand pages", lambda i, w=wide, t=tokens: w.reshape(1, heads, t, dim))
            loose = self.tensor(1, tokens, kv, dim).transpose(1, 2)
            away = loose[:, :, None].expand(1, kv, group, tokens, dim)
            self.context(tokens, "expand loose pages", lambda i, w=away, t=tokens: w.reshape(1, heads, t, dim))

    def context(self, tokens, name, call):
        self.by_context[(tokens, name)] = call

    def mlp(self):
        wide = self.tensor(self.batch, self.seq, 2 * self.m["intermediate"])
        gate, up = wide.chunk(2, -1)
        self.by_rows["gate and up of one"] = lambda i: F.silu(gate) * up
        own, other = gate.contiguous(), up.contiguous()
        self.by_rows["gate and up"] = lambda i: F.silu(own) * other
        self.by_rows["gelu"] = lambda i: F.gelu(own)

    def ends(self):
        m = self.m
        table = self.tensor(m["vocab"], m["hidden"])
        ids = torch.randint(0, m["vocab"], (self.batch, self.seq), device=DEVICE)
        self.by_rows["embedding"] = lambda i: F.embedding(ids, table)
        if self.rows > 512:
            return
        logits = self.tensor(self.rows, 1, m["vocab"])
        exact = logits.float()
        self.by_rows["choose"] = lambda i: logits.argmax(-1)
        self.by_rows["choose of float32"] = lambda i: exact.argmax(-1)
        self.by_rows["logits to float32"] = lambda i: logits.float()
        self.by_rows["softmax"] = lambda i: torch.softmax(exact, -1)

    def small(self):
        ids = torch.zeros(self.rows, 1, device=DEVICE, dtype=torch.long)
        other = ids.clone()
        places = torch.arange(2048, device=DEVICE)
        one = torch.full((1,), 7, device=DEVICE)
        truth = torch.zeros(self.rows, device=DEVICE, dtype=torch.bool)
        half, single = self.x, self.x.new_zeros(())
        self.by_rows["copy"] = lambda i: ids.copy_(other)
        self.by_rows["count"] = lambda i: one.add_(1)
        self.by_rows["fill"] = lambda i: (ids.fill_(3), single.fill_(0), torch.zeros(self.rows, device=DEVICE))
        self.by_rows["compare"] = lambda i: (places[None, None, None, :] <= one[-1], ids == 3, truth | truth, ~truth)
        self.by_rows["sums"] = lambda i: (ids.sum(), ids.max(), torch.arange(self.rows, device=DEVICE), ids + 1)
        self.by_rows["to float32"] = lambda i: half.float()


class Products:
    """y = x Wᵀ, with weights that rotate so that they come from memory."""

    def __init__(self, wanted, rows, type_):
        self.calls = {}
        for n, k in wanted:
            copies = max(2, COLD_BYTES // (n * k * 2) + 1)
            weights = torch.empty(copies, n, k, device=DEVICE, dtype=type_).normal_(0, 0.02)
            for m in rows:
                x = torch.randn(m, k, device=DEVICE, dtype=torch.float32).to(type_)
                self.calls[(m, n, k)] = lambda i, x=x, w=weights: F.linear(x, w[i % len(w)])


# ---- measuring


def sequence(calls, iterations):
    for i in range(iterations):
        for call in calls:
            separate()
            call(i)
    separate()


def times_of(calls, iterations, graph):
    """For each call its typical kernels; and what lies between kernels, of a graph."""
    # At least twice: libraries load and choose their kernels at the first use.
    sequence(calls, 2)
    torch.cuda.synchronize()
    gap = None
    run = lambda: sequence(calls, iterations)  # noqa: E731
    if graph:
        captured = torch.cuda.CUDAGraph()
        with torch.cuda.graph(captured):
            sequence(calls, iterations)
        run = captured.replay
        run()
        torch.cuda.synchronize()
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        whole = []
        for _ in range(5):
            begin.record()
            run()
            end.record()
            torch.cuda.synchronize()
            whole.append(begin.elapsed_time(end) * 1e6)
    kernels = traced(run)
    if graph and kernels:
        gap = (statistics.median(whole) - sum(k[3] for k in kernels)) / len(kernels)
    split = groups(kernels)
    if len(split) != len(calls) * iterations + 1:
        return None, gap
    return [typical(split[place:len(calls) * iterations:len(calls)]) for place in range(len(calls))], gap


def emit_kernels(name, scale, tokens, stage, kernels, graph):
    for place, (kernel, blocks, threads, ns) in enumerate(kernels):
        emit("kernel", kernel=kernel, op="%s %d" % (name, place), scale=scale, tokens=tokens, stage=stage, graph=graph,
             blocks=blocks, threads=threads, ns=ns)


def measure_rows(spec, stage, rows, graph):
    """All calls of one size."""
    model = spec["model"]
    type_ = TYPES[model.get("dtype", "bfloat16")]
    contexts = [c for c in spec.get("contexts", []) if stage == "decode" and c >= rows]
    calls = Calls(model, rows, stage == "decode", contexts)
    wanted = [(p["n"], p["k"]) for p in spec["products"] if stage == "decode" or not p.get("last")]
    products = Products(wanted, [rows], type_)
    names, todo = [], []
    weighty = list(products.calls.items())
    everything = ([("rows", rows, name, call) for name, call in calls.by_rows.items()] +
                  [("context", tokens, name, call) for (tokens, name), call in calls.by_context.items()])
    for place, item in enumerate(everything):  # products between, as in a model
        names.append(item[:3])
        todo.append(item[3])
        if weighty and place % 3 == 1:
            key, call = weighty[(place // 3) % len(weighty)]
            names.append(("product", key, ""))
            todo.append(call)
    for key, call in weighty:
        if ("product", key, "") not in names:
            names.append(("product", key, ""))
            todo.append(call)
    measured, gap = times_of(todo, 6 if rows <= 1024 else 3, graph)
    if measured is None:
        emit("note", text="%s of %d rows: the trace is not whole" % (stage, rows))
        return None
    by_product = {}
    for (kind, size, name), kernels in zip(names, measured):
        if kind == "product":
            by_product.setdefault(size, []).append(kernels)
        else:
            emit_kernels(name, kind, size, stage, kernels, graph)
    for (m, n, k), several in by_product.items():
        usual = several[len(several) // 2]
        emit("product", m=m, n=n, k=k, dtype=model.get("dtype", "bfloat16"), stage=stage, graph=graph,
             kernels=[kernel[0] for kernel in usual],
             ns=statistics.median(sum(kernel[3] for kernel in kernels) for kernels in several))
    return gap


def measure_queued_gap(spec):
    """From the end of a kernel to the begin of the next, launched long before."""
    calls = Calls(spec["model"], 64, False, [])
    todo = [calls.by_rows[name] for name in ("rms_norm", "residual", "gate and up", "rotary of queries")] * 20
    sequence(todo, 1)

    def run():
        torch.cuda._sleep(200_000_000)  # about 0.1 s: the queue fills
        sequence(todo, 1)
    kernels = traced(run)[1:]
    total = sum(k[3] for k in kernels)
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    torch.cuda.synchronize()
    torch.cuda._sleep(200_000_000)
    begin.record()
    sequence(todo, 1)
    end.record()
    torch.cuda.synchronize()
    return (begin.elapsed_time(end) * 1e6 - total) / max(1, len(kernels))


# ---- attention, in the form that a program was seen to use


def attention_forms(m, batch, q, kv, type_, copies):
    """Ways to call scaled_dot_product_attention, by name: a call on data that rotates."""
    heads, kvh, dim = m["heads"], m["kv_heads"], m["head_dim"]
    group = heads // kvh

    def data(*shape):
        return torch.empty(copies, *shape, device=DEVICE, dtype=type_).normal_(0, 1)

    def form(queries, keys, **extra):
        qs, ks, vs = data(*queries), data(*keys), data(*keys)
        return lambda i: F.scaled_dot_product_attention(qs[i % copies], ks[i % copies], vs[i % copies], **extra)

    def mask(*shape):
        allowed = torch.ones(*shape, device=DEVICE, dtype=torch.bool)
        return allowed.tril(shape[-1] - shape[-2]) if shape[-2] > 1 else allowed

    forms = {}
    if q == 1:
        forms["grouped queries, mask"] = lambda: form((batch, kvh, group, dim), (batch, kvh, kv, dim),
                                                      attn_mask=mask(1, 1, 1, kv))
        forms["grouped queries"] = lambda: form((batch, kvh, group, dim), (batch, kvh, kv, dim))
        forms["repeated keys"] = lambda: form((batch, heads, 1, dim), (batch, heads, kv, dim))
        forms["shared keys"] = lambda: form((batch, heads, 1, dim), (batch, kvh, kv, dim), enable_gqa=True)
        forms["repeated keys, mask"] = lambda: form((batch, heads, 1, dim), (batch, heads, kv, dim),
                                                    attn_mask=mask(batch, 1, 1, kv))
        forms["shared keys, mask"] = lambda: form((batch, heads, 1, dim), (batch, kvh, kv, dim), enable_gqa=True,
                                                  attn_mask=mask(batch, 1, 1, kv))
        forms["packed, mask"] = lambda: form((1, heads, batch, dim), (1, heads, batch * kv, dim),
                                             attn_mask=mask(1, 1, batch, batch * kv).to(type_))
    else:
        forms["causal"] = lambda: form((batch, heads, q, dim), (batch, heads, kv, dim), is_causal=True)
        forms["causal, shared keys"] = lambda: form((batch, heads, q, dim), (batch, kvh, kv, dim), is_causal=True,
                                                    enable_gqa=True)
        forms["mask"] = lambda: form((batch, heads, q, dim), (batch, heads, kv, dim), attn_mask=mask(batch, 1, q, kv))
        forms["packed, mask"] = lambda: form((1, heads, batch * q, dim), (1, heads, batch * kv, dim),
                                             attn_mask=mask(1, 1, batch * q, batch * kv).to(type_))
    return forms


def is_attention(name):
    """As is_attention() of the program."""
    words = ("flash_fwd", "flash_fprop", "fmha", "sdpa", "paged_attention", "mha_fwd", "flashinfer", "_attn_fwd",
             "lean_reduction")
    return any(word in name.lower() for word in words)


def plain(name):
    """As comparable_name() of the program compares them."""
    name = name[5:] if name.startswith("void ") else name
    return name.replace(" ", "").replace("3ul", "3")


def attend(m, form, batch, q, kv, type_, iterations):
    """Kernels of one call, with keys and values that come from memory."""
    moved = batch * m["heads"] * kv * m["head_dim"] * 4
    copies = min(4, max(1, COLD_BYTES // moved + 1)) if q == 1 else 1
    call = attention_forms(m, batch, q, kv, type_, copies)[form]()
    flush = torch.empty(COLD_BYTES, device=DEVICE, dtype=torch.uint8)

    def each(i):
        call(i)
    for i in range(2):
        each(i)

    def run():
        for i in range(iterations):
            flush.zero_() if q == 1 else None  # its memset is no kernel
            separate()
            each(i)
        separate()
    split = groups(traced(run))
    # Before the separator stands what flushes; PyTorch may do that with a kernel.
    return typical([[k for k in group if "FillFunctor<unsigned char>" not in k[0]] for group in split[:iterations]])


def choose_form(m, wanted, type_):
    """The form whose kernel is the one that was seen; else the first that runs."""
    best, how_good = None, -1
    for form in attention_forms(m, 1, wanted["q"], wanted["kv"], type_, 1):
        try:
            kernels = attend(m, form, wanted["batch"], wanted["q"], wanted["kv"], type_, 2)
        except Exception:  # not every form exists in every version
            continue
        if not kernels:
            continue
        main = next((k for k in kernels if is_attention(k[0])), max(kernels, key=lambda kernel: kernel[3]))
        same = plain(main[0]).split("(")[0] == plain(wanted["kernel"]).split("(")[0]
        count = len(kernels) == wanted.get("kernels", len(kernels))
        good = 4 * same + 2 * (main[1] == wanted["blocks"]) + count
        if good > how_good:
            best, how_good = form, good
    return best, how_good >= 4


def measure_attention(spec):
    m = spec["model"]
    type_ = TYPES[m.get("dtype", "bfloat16")]
    for wanted in spec.get("attention", []):
        form, same = choose_form(m, wanted, type_)
        if form is None:
            emit("note", text="no attention of %s ran" % wanted["stage"])
            continue
        if not same:
            emit("note", text="%s: no way to call attention gave the kernel that was seen; taken: %s" %
                 (wanted["stage"], form))
        for batch, q, kv in wanted["places"]:
            if out_of_time():
                emit("note", text="attention of %s: time is up, the largest sizes were left out" % wanted["stage"])
                break
            try:
                kernels = attend(m, form, batch, q, kv, type_, 4)
            except torch.cuda.OutOfMemoryError:
                torch.cuda.empty_cache()
                continue
            if not kernels:
                continue
            main = [k for k in kernels if is_attention(k[0])] or [max(kernels, key=lambda k: k[3])]
            emit("attention", stage=wanted["stage"], form=form, asked=wanted["kernel"], same=same, heads=m["heads"],
                 kv_heads=m["kv_heads"], head_dim=m["head_dim"], batch=batch, q=q, kv=kv,
                 kernels=[k[0] for k in main], ns=sum(k[3] for k in main))
            if batch == 1:  # what comes with it: masks
                emit_kernels("beside attention", "context", kv, wanted["stage"],
                             [k for k in kernels if k not in main], False)


def measure_host():
    """What the host takes to launch one operator, nothing waited for."""
    x = torch.zeros(1024, device=DEVICE)
    samples = []
    for _ in range(5):
        torch.cuda.synchronize()
        begin = time.perf_counter_ns()
        for _ in range(200):
            torch.add(x, 1)
        samples.append((time.perf_counter_ns() - begin) / 200)
        torch.cuda.synchronize()
    return statistics.median(samples)


END = [float("inf")]


def out_of_time():
    return time.monotonic() > END[0]


def main():
    with open(sys.argv[1]) as file:
        spec = json.load(file)
    END[0] = time.monotonic() + spec.get("seconds", 300)
    torch.manual_seed(0)
    emit("about", framework="pytorch", version=torch.__version__, device=torch.cuda.get_device_name(0))
    with torch.inference_mode():
        gaps = []
        todo = [("decode", rows, True) for rows in spec["decode_rows"]]
        todo += [("decode", rows, False) for rows in spec.get("eager_rows", [])]
        todo += [("prefill", rows, False) for rows in spec["prefill_rows"]]
        measure_attention(spec)
        for stage, rows, graph in todo:
            if out_of_time():
                emit("note", text="time is up: %s of %d rows was left out" % (stage, rows))
                continue
            try:
                gap = measure_rows(spec, stage, rows, graph)
            except torch.cuda.OutOfMemoryError:
                torch.cuda.empty_cache()
                emit("note", text="%s of %d rows does not fit into the memory" % (stage, rows))
                continue
            if gap is not None:
                gaps.append(gap)
            print("probe: %s, %d rows" % (stage, rows), file=sys.stderr, flush=True)
        emit("gap", graph_ns=statistics.median(gaps) if gaps else 0, queued_ns=max(0, measure_queued_gap(spec)))
        emit("launch", op_ns=measure_host())
    emit("end")


if __name__ == "__main__":
    main()
