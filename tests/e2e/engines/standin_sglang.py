"""A stand-in for SGLang: its registry of hooks with the two kinds that are used, and a scheduler behind the names that the
hooks are placed at. `registry` False: an older one that has no plugins."""
FILES = {
    "sglang/__init__.py": "__version__ = {version!r}\n",
    "sglang/srt/__init__.py": "",
    "sglang/srt/managers/__init__.py": "",
    "sglang/srt/managers/schedule_batch.py": '''
class FINISH_LENGTH: pass
class FINISH_ABORT: pass

class Lengths(list):
    def tolist(self): return list(self)

class Req:
    def __init__(self, rid, prompt, most):
        self.rid, self.origin_input_ids, self.output_ids, self.computed = rid, [1] * prompt, [], 0
        self.sampling_params, self.finished_reason = type("P", (), {"max_new_tokens": most}), None
    def finished(self): return self.finished_reason is not None
    def reset_for_retract(self): self.computed = 0
''',
    "sglang/srt/managers/scheduler.py": '''
import sys; sys.path.insert(0, PYTHON)
import llmprof
from .schedule_batch import FINISH_ABORT, FINISH_LENGTH, Lengths, Req
REGISTRY

class Mode:
    def __init__(self, name): self.name = name
    def is_extend(self): return self.name in ("EXTEND", "MIXED")
    def is_decode(self): return self.name == "DECODE"

class Pool:
    size = 4096
    def available_size(self): return 4000

class Batch: pass

class Scheduler:
    tp_rank = pp_rank = 0
    token_to_kv_pool_allocator = Pool()
    def __init__(self): self.waiting_queue, self.steps, self.tokens = [], 0, 0

    def _add_request_to_queue(self, req, is_retracted=False):
        self.waiting_queue.append(req)

    def next_batch(self, budget=64):
        batch, self.running = Batch(), [req for req in self.waiting_queue if not req.finished()]
        batch.reqs, batch.extend_lens, batch.seq_lens_cpu = [], [], Lengths()
        for req in self.running:
            tokens = min(budget, len(req.origin_input_ids) + len(req.output_ids) - req.computed)
            if tokens <= 0: continue
            budget, req.computed = budget - tokens, req.computed + tokens
            batch.reqs.append(req); batch.extend_lens.append(tokens); batch.seq_lens_cpu.append(req.computed)
        ones = sum(tokens == 1 for tokens in batch.extend_lens)
        batch.forward_mode = Mode("DECODE" if ones == len(batch.reqs) else "MIXED" if ones else "EXTEND")
        if batch.forward_mode.is_decode(): batch.extend_lens = None
        return batch

    def run_batch(self, batch):
        self.steps, self.tokens = self.steps + 1, self.tokens + sum(batch.extend_lens or [1] * len(batch.reqs))
        with llmprof.range(f"step[{batch.forward_mode.name} bs={len(batch.reqs)}]"): pass
        return "logits"

    def process_batch_result(self, batch, result):
        for req in batch.reqs:
            if req.computed == len(req.origin_input_ids) + len(req.output_ids):
                req.output_ids.append(7)
                if len(req.output_ids) == req.sampling_params.max_new_tokens: req.finished_reason = FINISH_LENGTH()
                if req.rid == "gone" and len(req.output_ids) == 2: req.finished_reason = FINISH_ABORT()
''',
}
REGISTRY = {
    "sglang/srt/plugins/hook_registry.py": '''
import enum, pkgutil
class HookType(enum.Enum):
    BEFORE, AFTER = "before", "after"
class HookRegistry:
    hooks = []
    @classmethod
    def register(cls, target, hook, hook_type): cls.hooks.append((target, hook, hook_type))
    @classmethod
    def apply_hooks(cls):
        for target, hook, kind in cls.hooks:
            owner, name = target.rsplit(".", 1)
            owner = pkgutil.resolve_name(owner)
            setattr(owner, name, cls.wrapped(getattr(owner, name), hook, kind))
    @staticmethod
    def wrapped(original, hook, kind):
        def run(*arguments, **named):
            if kind is HookType.BEFORE: hook(*arguments, **named)
            result = original(*arguments, **named)
            if kind is HookType.AFTER: hook(result, *arguments, **named)
            return result
        return run
''',
    "sglang/srt/plugins/__init__.py": '''
from .hook_registry import HookRegistry
def load_plugins():
    HookRegistry.apply_hooks()
''',
}

PROGRAM = '''
import json
import sglang
from sglang.srt.managers.scheduler import Req, Scheduler
if REGISTRY:
    from sglang.srt.plugins import load_plugins
    load_plugins()
scheduler = Scheduler()
requests = [Req("one", 40, 5), Req("two", 100, 4), Req("three", 10, 6), Req("gone", 30, 50)]
for request in requests: scheduler._add_request_to_queue(request)
while True:
    if scheduler.steps == 4:
        requests[0].reset_for_retract()
        scheduler._add_request_to_queue(scheduler.waiting_queue.pop(0), is_retracted=True)
    batch = scheduler.next_batch()
    if not batch.reqs: break
    scheduler.process_batch_result(batch, scheduler.run_batch(batch))
print(json.dumps({"steps": scheduler.steps, "tokens": scheduler.tokens}))
'''


def files(version, python, registry):
    scheduler = "sglang/srt/managers/scheduler.py"
    kept = {**FILES, **(REGISTRY if registry else {})}
    kept["sglang/__init__.py"] = kept["sglang/__init__.py"].format(version=version)
    kept[scheduler] = kept[scheduler].replace("PYTHON", repr(python)).replace(
        "REGISTRY", "from sglang.srt.plugins import load_plugins" if registry else "")
    return kept
