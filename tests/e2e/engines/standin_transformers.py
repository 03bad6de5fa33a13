"""A stand-in for transformers' continuous batching: the names that its hook uses, and behind them just enough of a scheduler,
without a model. Written as a package by engines_test.py; the real one is tried in tests/ecosystem."""
FILES = {
    "transformers/__init__.py": "__version__ = {version!r}\n",
    "transformers/generation/__init__.py": "",
    "transformers/generation/continuous_batching/__init__.py": "from .continuous_api import ContinuousBatchProcessor\n",
    "transformers/generation/continuous_batching/requests.py": '''
import dataclasses

@dataclasses.dataclass
class RequestState:
    request_id: str
    initial_tokens: list
    max_new_tokens: int = None
    generated_tokens: list = dataclasses.field(default_factory=list)
    position_offset: int = 0
    _true_initial_tokens: int = 0
    _eos_token_ids: set = dataclasses.field(default_factory=lambda: {0})

    def __post_init__(self):
        self.limit = self.max_new_tokens or 1 << 31

    def fork(self, name):
        import copy
        child = copy.deepcopy(self)
        child.request_id = name
        return child

    def update_and_check_completion(self, token, logprob):
        self.generated_tokens.append(token)
        return token in self._eos_token_ids or len(self.generated_tokens) >= self.limit

class Future:
    def __init__(self, state, query_length):
        self.state, self.query_length = state, query_length
''',
    "transformers/generation/continuous_batching/scheduler.py": '''
class Scheduler:
    def __init__(self):
        self.active_requests, self.cancelled = {}, []

    def clear_cancelled_requests(self):
        states = [self.active_requests.pop(name) for name in self.cancelled]
        self.cancelled = []
        return states
''',
    "transformers/generation/continuous_batching/continuous_api.py": '''
import time
from .requests import Future, RequestState
from .scheduler import Scheduler

class Cache:
    num_blocks = 64
    def compute_free_capacity(self): return 0.75

class Inputs:
    requests_in_batch, num_q_tokens = (), 0

class OffloadingManager:
    def __init__(self, scheduler): self.scheduler = scheduler
    def offload_requests(self):
        name, state = self.scheduler.active_requests.popitem()
        return RequestState(name, state.initial_tokens + state.generated_tokens, state.max_new_tokens - len(state.generated_tokens),
                            _true_initial_tokens=len(state.initial_tokens))

class OutputRouter:
    def fail_and_deliver(self, state, error): state.error = error

class ContinuousBatchProcessor:
    def __init__(self):
        self.cache, self.inputs_and_outputs, self.scheduler = Cache(), Inputs(), Scheduler()
        self.offloading_manager, self.output_router = OffloadingManager(self.scheduler), OutputRouter()

    def prepare_next_batch(self, budget=64):
        batch = []
        for state in list(self.scheduler.active_requests.values()):
            left = len(state.initial_tokens) + len(state.generated_tokens) - state.position_offset
            tokens = min(left, budget)
            if tokens > 0:
                state.position_offset, budget = state.position_offset + tokens, budget - tokens
                batch.append(Future(state, tokens))
        self.inputs_and_outputs.requests_in_batch = batch
        self.inputs_and_outputs.num_q_tokens = 64
        return bool(batch)

    def _generation_step(self, model):
        until = time.perf_counter() + 0.001
        while time.perf_counter() < until: pass

    def update_batch(self):
        for future in self.inputs_and_outputs.requests_in_batch:
            state = future.state
            if state.position_offset == len(state.initial_tokens) + len(state.generated_tokens):
                if state.update_and_check_completion(7, None):
                    del self.scheduler.active_requests[state.request_id]
''',
}

PROGRAM = '''
import json, sys
import importlib.util
importlib.util.find_spec("transformers")  # looked for before it is imported, as programs do
import transformers
from transformers.generation.continuous_batching import ContinuousBatchProcessor
from transformers.generation.continuous_batching.requests import RequestState

class Config:
    def to_dict(self):
        return {"model_type": "llama", "hidden_size": 64, "num_hidden_layers": 1, "num_attention_heads": 4,
                "intermediate_size": 128, "vocab_size": 256}
class Model:
    config, dtype = Config(), "torch.bfloat16"

import contextlib
own = contextlib.nullcontext
if OWN:  # a step that the program names by itself
    sys.path.insert(0, PYTHON)
    import llmprof
    own = lambda: llmprof.step(OWN)
engine = ContinuousBatchProcessor()
active = engine.scheduler.active_requests
RequestState("__warmup_0__", [1])
states = {f"r{i}": RequestState(f"r{i}", [5] * (10 + 20 * i), 6) for i in range(5)}
steps, tokens = 0, 0
def run(most):
    global steps, tokens
    while most and engine.prepare_next_batch():
        tokens += sum(future.query_length for future in engine.inputs_and_outputs.requests_in_batch)
        with own(): engine._generation_step(Model())
        engine.update_batch()
        steps, most = steps + 1, most - 1
active.update(r0=states["r0"])
run(1)
active["child"] = states["r0"].fork("child")
active.update(states)
run(3)
active["r4"] = back = engine.offloading_manager.offload_requests()
run(2)
engine.scheduler.cancelled = ["r3"]
engine.scheduler.clear_cancelled_requests()
if BREAK: del type(engine.cache).num_blocks
run(-1)
engine.output_router.fail_and_deliver(RequestState("bad", [1, 2], 3), "no such adapter")
if "_llmprof" in sys.modules: assert sys.modules["_llmprof"]._tool._quick, "marks go through ctypes"
print(json.dumps({"steps": steps, "tokens": tokens, "made": {k: len(v.generated_tokens) for k, v in states.items()},
                  "again": len(back.generated_tokens)}))
'''
