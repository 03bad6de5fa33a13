"""SGLang's scheduler: a run of a batch is a step. Hooks go through SGLang's own registry, as its documented plugins of the group
sglang.srt.plugins do; versions before it has one are wrapped directly. Rank 0 tells what becomes of requests."""
import sys

from . import ABORTED, BLOCKS, FINISHED, LENGTH, OUTPUT, PREEMPTED, SCHEDULED, STOPPED, arm

TRIED = (0, 5), (0, 5)  # 0.5.9 and the source of August 2026 read; none run
_REGISTRY, _SCHEDULER, _BATCH = "sglang.srt.plugins", "sglang.srt.managers.scheduler", "sglang.srt.managers.schedule_batch"


def register():
    arm("sglang")


class _Hooks:
    def __init__(self, engine):
        self.engine, self.made = engine, {}  # requests that hold a part of the cache -> output tokens that were told
        self.first = True  # of the ranks

    # Steps.
    def open(self, scheduler, batch, *_, **__):
        mode = batch.forward_mode
        if not batch.reqs or not (mode.is_extend() or mode.is_decode()):
            return
        ranks = getattr(scheduler, "ps", scheduler)
        self.first = not getattr(ranks, "tp_rank", 0) and not getattr(ranks, "pp_rank", 0)
        lengths = getattr(batch, "seq_lens_cpu", None)
        lengths = [len(each.origin_input_ids) + len(each.output_ids) for each in batch.reqs] if lengths is None \
            else lengths.tolist()
        tokens = batch.extend_lens if mode.is_extend() else [1] * len(lengths)
        members = []
        for request, length, count in zip(batch.reqs, lengths, tokens):
            members.append((request.rid, count, length, length <= len(request.origin_input_ids)))
            if request.rid not in self.made:
                self.made[request.rid] = len(request.output_ids)
                self._mark(request.rid, SCHEDULED, length - count)
        self.engine.open_step(members)
        pool = getattr(scheduler, "token_to_kv_pool_allocator", None)
        if pool is not None:
            self._mark("", BLOCKS, pool.size - pool.available_size(), pool.size)

    def close(self, *_, **__):
        self.engine.close_step()

    # Requests.
    def _mark(self, *what):
        if self.first:
            self.engine.mark(*what)

    def queued(self, _, scheduler, request, is_retracted=False, *__, **___):
        if not is_retracted and not request.output_ids:
            ranks = getattr(scheduler, "ps", scheduler)
            self.first = not getattr(ranks, "tp_rank", 0) and not getattr(ranks, "pp_rank", 0)
            if self.first:
                self.engine.queued(request.rid, len(request.origin_input_ids), request.sampling_params.max_new_tokens)

    def preempted(self, request, *_, **__):
        if self.made.pop(request.rid, None) is not None:
            self._mark(request.rid, PREEMPTED)

    def processed(self, _, scheduler, batch, *__, **___):
        for request in batch.reqs:
            told, made = self.made.get(request.rid), len(request.output_ids)
            if told is None:  # it has ended: a batch that was under way then had it still
                continue
            if made > told:
                self._mark(request.rid, OUTPUT, made - told)
                self.made[request.rid] = made
            if request.finished():
                del self.made[request.rid]
                kind = type(request.finished_reason).__name__
                self._mark(request.rid, FINISHED, {"FINISH_LENGTH": LENGTH, "FINISH_ABORT": ABORTED}.get(kind, STOPPED), made)


def _places(hooks):
    """What is hooked, with what runs before and after it."""
    scheduler = f"{_SCHEDULER}.Scheduler"
    return ((f"{scheduler}.run_batch", hooks.open, hooks.close),
            (f"{scheduler}.process_batch_result", None, hooks.processed),
            (f"{scheduler}._add_request_to_queue", None, hooks.queued),
            (f"{_BATCH}.Req.reset_for_retract", hooks.preempted, None))


def _hook_registry(engine, module):
    from sglang.srt.plugins.hook_registry import HookRegistry, HookType
    for place, before, after in _places(_Hooks(engine)):
        if before is not None:
            HookRegistry.register(place, engine.guarded(before), HookType.BEFORE)
        if after is not None:
            HookRegistry.register(place, engine.guarded(after), HookType.AFTER)
    engine.owners.append("SGLang's registry")


def _hook_scheduler(engine, module):
    if _REGISTRY in sys.modules:
        return
    for place, before, after in _places(_Hooks(engine)):
        owner, cls, name = place.rsplit(".", 2)
        engine.wrap(getattr(sys.modules[owner], cls), name, before, after, step=name == "run_batch")


TARGETS = {_REGISTRY: _hook_registry, _SCHEDULER: _hook_scheduler}
