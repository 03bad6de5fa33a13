#!/usr/bin/env python3
"""What `record --modules` costs an eager decode: `perf/modules_cost.py BIN [options]`, prints a table in Markdown.

A program decodes with transformers' Qwen3 (random weights): on a GPU the shape of Qwen3-1.7B, batch 2, prompt 512, 64
tokens; without one (or with --cpu) a narrow model of as many modules, so that Python is all there is to measure, and the CPU
time of its thread instead of the time that passed, so that others on the machine count less. It runs three times at once,
alone, under `record` and under `record --modules`, and the three take turns: a prompt and its tokens each, round by round,
the others stopped (SIGSTOP, recorder included) meanwhile. So every ratio is of two blocks seconds apart. Given are the medians
over all rounds, and the middle half of them. Where a host is too noisy for that, `--within` takes one process under `record --modules`
and gives every other eight tokens PyTorch's own `Module.__call__` back: ratios are of tokens that follow each other. The first
three of eight do not count: Python has to learn anew what it calls."""
import argparse
import json
import os
import pathlib
import signal
import statistics
import subprocess
import sys
import tempfile
import time


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bin", nargs="?", help="folder of llmprof")
    parser.add_argument("--rounds", type=int, default=16, help="of one set of processes")
    parser.add_argument("--fleets", type=int, default=2, help="fresh sets of processes")
    parser.add_argument("--tokens", type=int, default=64)
    parser.add_argument("--prompt", type=int, default=512)
    parser.add_argument("--batch", type=int, default=2)
    parser.add_argument("--budget", type=float, default=420, help="seconds for everything; rounds are cut short at it")
    parser.add_argument("--record", default="", help="more options of record, in one word")
    parser.add_argument("--cpu", action="store_true")
    parser.add_argument("--within", action="store_true", help="one process, every other eight tokens without")
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--program", action="store_true", help=argparse.SUPPRESS)
    return parser.parse_args()


options = parse()
GROUP = 8


def program():
    import torch
    import transformers
    gpu = torch.cuda.is_available() and not options.cpu
    shape = dict(hidden_size=2048, intermediate_size=6144, num_attention_heads=16, num_key_value_heads=8, head_dim=128,
                 vocab_size=151936) if gpu else \
        dict(hidden_size=32, intermediate_size=64, num_attention_heads=2, num_key_value_heads=1, head_dim=16, vocab_size=256)
    if not gpu:
        torch.set_num_threads(1)
    torch.manual_seed(0)
    torch.set_default_dtype(torch.bfloat16 if gpu else torch.float32)
    with torch.device("cuda" if gpu else "cpu"):
        model = transformers.Qwen3ForCausalLM(transformers.Qwen3Config(
            num_hidden_layers=28, max_position_embeddings=4096, tie_word_embeddings=True, **shape)).eval()
        prompt = torch.randint(3, 250, (options.batch, options.prompt))

    clock = time.perf_counter if gpu else time.thread_time

    def wait():
        if gpu:
            torch.cuda.synchronize()

    ours, plain = torch.nn.Module.__call__, torch.nn.Module._wrapped_call_impl

    @torch.no_grad()
    def block(tokens):
        result = model(prompt, use_cache=True, logits_to_keep=1)
        times = []
        for number in range(tokens):
            if options.within:
                torch.nn.Module.__call__ = ours if number // GROUP % 2 else plain
            wait()
            begin = clock()
            ids = result.logits[:, -1:].argmax(-1)
            result = model(ids, past_key_values=result.past_key_values, use_cache=True)
            wait()
            times.append(1e3 * (clock() - begin))
        torch.nn.Module.__call__ = ours
        return times if options.within else times[3:]
    if options.within and ours is plain:
        sys.exit("record --modules did not replace Module.__call__")
    block(8)
    calls = 0

    def count(*_):
        nonlocal calls
        calls += 1
    handles = [module.register_forward_pre_hook(count) for module in model.modules()]
    block(4)
    for handle in handles:
        handle.remove()
    print(json.dumps({"calls": calls // 5, "torch": torch.__version__, "transformers": transformers.__version__,
                      "device": torch.cuda.get_device_name() if gpu else "CPU, narrow, CPU time"}), flush=True)
    for line in sys.stdin:
        if line.startswith("end"):
            break
        print(json.dumps({"ms": block(options.tokens)}), flush=True)


class Player:
    def __init__(self, name, before, folder):
        self.name, self.log = name, open(folder / f"{name}.err", "w")
        words = [options.python, "-u", __file__, "--program", "--tokens", str(options.tokens), "--prompt", str(options.prompt),
                 "--batch", str(options.batch), *(["--cpu"] if options.cpu else []), *(["--within"] if options.within else [])]
        self.process = subprocess.Popen([*before, *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log,
                                        text=True, start_new_session=True)
        self.about = self.answer()

    def answer(self):
        while line := self.process.stdout.readline():
            if line.startswith("{"):
                return json.loads(line)
        sys.exit(f"{self.name}: ended: {pathlib.Path(self.log.name).read_text()[-800:]}")

    def signal(self, number):
        os.killpg(self.process.pid, number)

    def tell(self, text):
        self.process.stdin.write(text + "\n")
        self.process.stdin.flush()

    def block(self):
        self.signal(signal.SIGCONT)
        self.tell("block")
        times = self.answer()["ms"]
        self.signal(signal.SIGSTOP)
        return times if options.within else statistics.median(times)

    def end(self):
        self.signal(signal.SIGCONT)
        self.tell("end")
        self.process.communicate(timeout=120)


def spread(values):
    low, middle, high = statistics.quantiles(values, n=4)
    return f"{middle:.3f} [{low:.3f}, {high:.3f}]"


def measure(folder):
    llmprof = str(pathlib.Path(options.bin).resolve() / "llmprof")
    record = [llmprof, "record", "-q", "--no-peaks", *options.record.split()]
    commands = {"alone": [], "record": record, "record --modules": [*record, "--modules"]}
    times, about, began = {name: [] for name in commands}, None, time.monotonic()
    for fleet in range(options.fleets):
        players = []
        for name, words in commands.items():
            run = ["-o", str(folder / f"{fleet}-{name.replace(' ', '')}"), "--"] if words else []
            players.append(Player(name, [*words, *run], folder))
            players[-1].signal(signal.SIGSTOP)
        about = players[0].about
        for number in range(options.rounds):
            if time.monotonic() - began > options.budget:
                print(f"stopped after {number} rounds: no time left", file=sys.stderr)
                break
            for player in players if number % 2 == 0 else reversed(players):
                times[player.name].append(player.block())
        for player in players:
            player.end()
    return times, about


def within(folder):
    """Ratios of each group of tokens with ranges to the mean of the two beside it without."""
    llmprof = str(pathlib.Path(options.bin).resolve() / "llmprof")
    ratios, costs, medians, about = [], [], ([], []), None
    for fleet in range(options.fleets):
        player = Player("record --modules", [llmprof, "record", "-q", "--no-peaks", *options.record.split(), "--modules", "-o",
                                             str(folder / f"{fleet}"), "--"], folder)
        about = player.about
        for _ in range(options.rounds):
            all_times = player.block()
            times = [statistics.median(all_times[i + 3:i + GROUP]) for i in range(0, len(all_times), GROUP)]
            for i in range(1, len(times) - 1, 2):  # even ones are without
                beside = (times[i - 1] + times[i + 1]) / 2
                ratios.append(times[i] / beside)
                costs.append(1e6 * (times[i] - beside) / about["calls"])
                medians[0].append(beside), medians[1].append(times[i])
        player.end()
    middle, count = statistics.median(ratios), len(ratios)
    ordered = sorted(ratios)
    off = int(0.98 * count ** 0.5)  # ranks of a 95 % interval of the median
    print(f"Qwen3, 28 layers, batch {options.batch}, prompt {options.prompt}, eager; {about['device']}, torch {about['torch']}, transformers "
          f"{about['transformers']}; one process under record --modules, every other {GROUP} tokens without it: {count} groups, "
          f"{about['calls']} calls of modules each\n\n{statistics.median(medians[0]):.3f} ms without, {statistics.median(medians[1]):.3f} ms with: "
          f"ratio {middle:.4f} [{ordered[count // 2 - off]:.4f}, {ordered[min(count - 1, count // 2 + off)]:.4f}] (95 % interval of the median), "
          f"{statistics.median(costs):.0f} ns per call of a module (budget: 1.03)")


def main():
    if options.within:
        with tempfile.TemporaryDirectory(prefix="llmprof-modules-") as folder:
            return within(pathlib.Path(folder))
    with tempfile.TemporaryDirectory(prefix="llmprof-modules-") as folder:
        times, about = measure(pathlib.Path(folder))
    print(f"Qwen3, 28 layers, batch {options.batch}, prompt {options.prompt}, {options.tokens} tokens, eager; {about['device']}, "
          f"torch {about['torch']}, transformers {about['transformers']}; {len(times['alone'])} rounds of blocks that take turns; "
          f"median [quartiles]; {about['calls']} calls of modules per token\n")
    print("| | ms per token | against alone | against record |\n|---|---|---|---|")
    for name, values in times.items():
        ratios = [spread([a / b for a, b in zip(values, times[other])]) for other in ("alone", "record")]
        print(f"| {name} | {spread(values)} | {ratios[0]} | {ratios[1]} |")
    cost = [1e6 * (a - b) / about["calls"] for a, b in zip(times["record --modules"], times["record"])]
    low, middle, high = statistics.quantiles(cost, n=4)
    print(f"\n--modules costs {middle:.0f} [{low:.0f}, {high:.0f}] ns per call of a module, and "
          f"{1e2 * (statistics.median(a / b for a, b in zip(times['record --modules'], times['record'])) - 1):.2f} % of a token "
          f"over the same recording without it (budget: 3 %)")


program() if options.program else main()
