#!/usr/bin/env python3
"""What `record --requests` costs an engine: `perf/requests_cost.py BIN [--running N]`, prints a table in Markdown.

A program calls the methods that the hooks of vLLM and of transformers are placed at, on stand-ins that do nothing, once a step for N
running requests that decode. Given is the CPU time of the thread per step that the hooks add to that, the median of rounds of
20 steps, alone (nobody listens, LLMPROF_REQUESTS unset) and under `record --requests`."""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

PYTHON = pathlib.Path(__file__).resolve().parents[1] / "python"
PROGRAM = '''
import json, statistics, sys, time, types
sys.path.insert(0, sys.argv[1])
N = int(sys.argv[2])
from types import SimpleNamespace as S

def module(name, **fields):
    made = sys.modules[name] = types.ModuleType(name)
    vars(made).update(fields)
    return made

class Scheduler:
    def __init__(self, output, result):
        self.output, self.result = output, result
        self.kv_cache_manager = S(block_pool=S(num_gpu_blocks=9999, get_num_free_blocks=lambda: 99))
    def add_request(self, request): pass
    def schedule(self): return self.output
    def update_from_output(self, output, ran): return self.result
    def _free_request(self, request): pass
class WorkerWrapperBase:
    def __init__(self, worker): self.worker = worker
    def init_device(self): pass
class Worker:
    vllm_config = S(model_config=S(hf_config=None, dtype=""))
    def execute_model(self, output): return None
    def sample_tokens(self, grammar): return 1
ids = [f"cmpl-{i:032x}-0-0badcafe" for i in range(N)]
def vllm():
    cached = S(req_ids=ids, num_computed_tokens=[1000] * N, resumed_req_ids=set())
    output = S(scheduled_new_reqs=[], scheduled_cached_reqs=cached, num_scheduled_tokens=dict.fromkeys(ids, 1),
               scheduled_spec_decode_tokens={})
    result = {0: S(outputs=[S(request_id=name, new_token_ids=[7]) for name in ids])}
    scheduler, worker = Scheduler(output, result), Worker()
    WorkerWrapperBase(worker).init_device.__func__(WorkerWrapperBase(worker))
    def step():
        worker.execute_model(scheduler.schedule())
        worker.sample_tokens(None)
        scheduler.update_from_output(output, None)
    return step

class RequestState:
    __dataclass_fields__ = dict.fromkeys(("request_id", "initial_tokens", "position_offset", "_true_initial_tokens", "_eos_token_ids"))
    initial_tokens, position_offset, _true_initial_tokens, _eos_token_ids, generated_tokens = [1] * 500, 1000, 0, {0}, [1]
    def __post_init__(self): pass
    def fork(self, name): pass
    def update_and_check_completion(self, token, logprob): return False
class ContinuousBatchProcessor:
    cache = S(num_blocks=99, compute_free_capacity=lambda: 0.5)
    def _generation_step(self, model): pass
def transformers():
    states = []
    for name in ids:
        states.append(RequestState())
        states[-1].request_id = name
    processor = ContinuousBatchProcessor()
    processor.inputs_and_outputs = S(num_q_tokens=N, requests_in_batch=[S(state=state, query_length=1) for state in states])
    def step():
        processor._generation_step(None)
        for state in states: state.update_and_check_completion(7, None)
    return step

module("vllm", __version__="0.32.0")
module("vllm.v1.core.sched.scheduler", Scheduler=Scheduler)
module("vllm.v1.worker.worker_base", WorkerWrapperBase=WorkerWrapperBase)
module("transformers", __version__="5.23.0")
place = "transformers.generation.continuous_batching."
module(place + "requests", RequestState=RequestState)
module(place + "scheduler", Scheduler=type("Scheduler", (), {"clear_cancelled_requests": lambda self: []}))
module(place + "continuous_api", ContinuousBatchProcessor=ContinuousBatchProcessor)
import llmprof.engines
for engine in ("vllm", "transformers"): llmprof.engines.arm(engine)
def measured(step):
    rounds = []
    for _ in range(30):
        begin = time.thread_time_ns()
        for _ in range(20): step()
        rounds.append((time.thread_time_ns() - begin) / 20e3)
        time.sleep(0.01)
    return statistics.median(rounds[5:])
print(json.dumps({"vllm": measured(vllm()), "transformers": measured(transformers())}))
'''


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bin", type=pathlib.Path, help="folder of llmprof")
    parser.add_argument("--running", type=int, default=256)
    parser.add_argument("--python", default=sys.executable)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        program = [options.python, "-c", PROGRAM, str(PYTHON), str(options.running)]
        record = [str(options.bin / "llmprof"), "record", "--quiet", "--no-peaks", "--no-host", "--requests", "-o", folder + "/run", "--"]
        environment = {name: value for name, value in os.environ.items() if not name.startswith("LLMPROF_")}
        alone, recorded = (json.loads(subprocess.run([*before, *program], check=True, stdout=subprocess.PIPE,
                                                     env=environment).stdout) for before in ((), record))
    print(f"{options.running} running requests, µs of CPU time of the engine's threads per step\n\n"
          "| engine | its own calls, nobody listens | under record --requests | added | per request |\n|---|---|---|---|---|")
    for engine in ("vllm", "transformers"):
        added = recorded[engine] - alone[engine]
        print(f"| {engine} | {alone[engine]:.1f} | {recorded[engine]:.1f} | {added:.1f} | {added / options.running:.2f} |")


if __name__ == "__main__":
    main()
