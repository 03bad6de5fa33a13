"""A stand-in for vLLM: an engine's core with a scheduler, and two workers in processes of their own. The shapes of what the
scheduler tells the workers are those of the version that is asked for. The real one was run on a CPU: docs/verified.md."""
FILES = {
    "vllm/__init__.py": "__version__ = {version!r}\n",
    "vllm/worker/__init__.py": "",
    "vllm/v1/__init__.py": "",
    "vllm/v1/core/__init__.py": "",
    "vllm/v1/core/sched/__init__.py": "",
    "vllm/v1/worker/__init__.py": "",
    "vllm/v1/core/sched/scheduler.py": '''
import types
import vllm
OLD = vllm.__version__ < "0.12"

class Request:
    def __init__(self, name, prompt, most):
        self.request_id, self.num_prompt_tokens, self.max_tokens = name, prompt, most
        self.num_computed_tokens = self.num_output_tokens = 0
        self.aborted = False
    def get_finished_reason(self): return 2 if self.aborted else 1

class Pool:
    num_gpu_blocks = 100
    def get_num_free_blocks(self): return 60

class Scheduler:
    def __init__(self):
        self.requests, self.running, self.seen, self.back, self.shared = {}, [], set(), set(), 0
        self.kv_cache_manager = types.SimpleNamespace(block_pool=Pool())

    def add_request(self, request):
        self.requests[request.request_id] = request

    def _preempt_request(self, request, timestamp):
        self._lose(request)

    def _lose(self, request):
        request.num_computed_tokens = 0
        self.back.add(request.request_id)

    def schedule(self, budget=64):
        new, names, computed, tokens, resumed = [], [], [], {}, []
        for name, request in self.requests.items():
            if name not in self.seen and self.shared and name.startswith("chatcmpl-late"): request.num_computed_tokens = 16
            count = min(budget, request.num_prompt_tokens + request.num_output_tokens - request.num_computed_tokens)
            if count <= 0: continue
            budget -= count
            tokens[name] = count
            if name not in self.seen:
                self.seen.add(name)
                new.append(types.SimpleNamespace(req_id=name, prompt_token_ids=[1] * request.num_prompt_tokens,
                                                 num_computed_tokens=request.num_computed_tokens))
            else:
                names.append(name)
                computed.append(request.num_computed_tokens)
                resumed.append(name in self.back)
                self.back.discard(name)
            request.num_computed_tokens += count
        cached = types.SimpleNamespace(req_ids=names, num_computed_tokens=computed, new_block_ids=[], new_token_ids=[])
        if OLD: cached.resumed_from_preemption = resumed
        else: cached.resumed_req_ids = {name for name, back in zip(names, resumed) if back}
        return types.SimpleNamespace(scheduled_new_reqs=new, scheduled_cached_reqs=cached, num_scheduled_tokens=tokens,
                                     total_num_scheduled_tokens=sum(tokens.values()), scheduled_spec_decode_tokens={},
                                     finished_req_ids=set())

    def update_from_output(self, scheduled, output):
        outputs = []
        for name in scheduled.num_scheduled_tokens:
            request = self.requests.get(name)
            if request is None or request.num_computed_tokens < request.num_prompt_tokens + request.num_output_tokens: continue
            request.num_output_tokens += 1
            if request.num_output_tokens == request.max_tokens: self._free_request(self.requests.pop(name))
            outputs.append(types.SimpleNamespace(request_id=name, new_token_ids=[7], finish_reason=None))
        return {0: types.SimpleNamespace(outputs=outputs)}

    def finish_requests(self, name):
        self.requests[name].aborted = True
        self._free_request(self.requests.pop(name))

    def _free_request(self, request):
        pass

if OLD: del Scheduler._preempt_request
''',
    "vllm/v1/worker/gpu_model_runner.py": '''
import contextlib
@contextlib.contextmanager
def set_forward_context(metadata, config, num_tokens=None):
    yield
def forward(tokens):
    with set_forward_context(None, None, num_tokens=(tokens + 31) // 32 * 32): pass
''',
    "vllm/v1/worker/gpu_worker.py": '''
import types
import vllm
from vllm.v1.worker import gpu_model_runner
import sys; sys.path.insert(0, {python!r})
import llmprof

class Config:
    def to_dict(self): return {{"model_type": "llama", "hidden_size": 64}}

class Worker:
    vllm_config = types.SimpleNamespace(model_config=types.SimpleNamespace(hf_config=Config(), dtype="torch.float16"))
    def init_device(self): gpu_model_runner.forward(512)  # what a profile run does is no step
    def execute_model(self, scheduled):
        total, context = sum(scheduled.num_scheduled_tokens.values()), len(scheduled.scheduled_new_reqs)
        generation = len(scheduled.num_scheduled_tokens) - context
        with llmprof.range(f"execute_context_{{context}}({{total - generation}})_generation_{{generation}}({{generation}})"):
            gpu_model_runner.forward(total)
        if vllm.__version__ < "0.12": return "output"
    if vllm.__version__ >= "0.12":
        def sample_tokens(self, grammar): return "output"
''',
    "WORKER_BASE": '''
class WorkerBase: pass
class WorkerWrapperBase:
    def init_worker(self):
        from vllm.v1.worker.gpu_worker import Worker
        self.worker = Worker()
    def init_device(self): self.worker.init_device()
    def __getattr__(self, name): return getattr(self.worker, name)
''',
}

PROGRAM = '''
import json, multiprocessing, sys
import vllm

def base():
    import vllm.worker.worker_base, vllm.v1.worker.worker_base
    return vllm.worker.worker_base if vllm.__version__ < "0.11.1" else vllm.v1.worker.worker_base

def plugins():
    """What vLLM does in all its processes, for a package that is installed."""
    if PLUGIN:
        sys.path.insert(0, PLUGIN)
        import llmprof.engines.vllm
        llmprof.engines.vllm.register()

def work(pipe):
    plugins()
    wrapper = base().WorkerWrapperBase()
    wrapper.init_worker()
    wrapper.init_device()
    while (scheduled := pipe.recv()) is not None:
        output = wrapper.execute_model(scheduled)
        if output is None: output = wrapper.sample_tokens(None)
        pipe.send(output)

def main():
    plugins()
    from vllm.v1.core.sched.scheduler import Request, Scheduler
    spawn = multiprocessing.get_context("spawn")  # a forked child ends without its exit handlers, and its last moments are lost
    workers = []
    for _ in range(2):
        ours, theirs = spawn.Pipe()
        process = spawn.Process(target=work, args=(theirs,))
        process.start()
        workers.append((process, ours))
    scheduler, steps, tokens = Scheduler(), 0, 0
    suffix = "-0badcafe" if vllm.__version__ >= "0.14" else ""
    requests = [Request(name + suffix, prompt, most) for name, prompt, most in
                (("cmpl-one-0", 40, 5), ("chatcmpl-two", 100, 4), ("three", 10, 6), ("cmpl-gone-0", 30, 50))]
    for request in requests: scheduler.add_request(request)
    while scheduler.requests:
        if steps == 3:  # of the one that waits longest
            if hasattr(scheduler, "_preempt_request"): scheduler._preempt_request(requests[2], 0.0)
            else: scheduler._lose(requests[2])
        if steps == 5: scheduler.finish_requests(requests[3].request_id)
        if steps == 6:
            scheduler.shared = 16
            scheduler.add_request(Request("chatcmpl-late" + suffix, 20, 2))
        scheduled = scheduler.schedule()
        if BREAK and steps == 6: del scheduled.scheduled_cached_reqs.num_computed_tokens
        for _, pipe in workers: pipe.send(scheduled)
        output = [pipe.recv() for _, pipe in workers][0]
        scheduler.update_from_output(scheduled, output)
        steps, tokens = steps + 1, tokens + scheduled.total_num_scheduled_tokens
    for process, pipe in workers:
        pipe.send(None)
        process.join()
    print(json.dumps({"steps": steps, "tokens": tokens}))

if __name__ == "__main__":
    main()
'''


def files(version, python):
    old = tuple(int(part) for part in version.split(".")) < (0, 11, 1)
    kept = {name: text.format(version=version, python=python) if name.endswith(("vllm/__init__.py", "gpu_worker.py")) else text
            for name, text in FILES.items() if name != "WORKER_BASE"}
    kept["vllm/v1/worker/worker_base.py"] = "from vllm.worker.worker_base import WorkerBase\n" if old else FILES["WORKER_BASE"]
    kept["vllm/worker/worker_base.py"] = FILES["WORKER_BASE"] if old else "from vllm.v1.worker.worker_base import WorkerWrapperBase\n"
    return kept
