"""Continuous batching of transformers. A pass of its batch processor is a step; what becomes of requests is told by their
states. Where it prepares a batch before it knows the tokens of the last (asynchronous batching), a request takes part in one
step more than it needs: that step computes a token that is thrown away."""
import sys

from . import ABORTED, BLOCKS, ERROR, FINISHED, LENGTH, OUTPUT, PREEMPTED, SCHEDULED, STOPPED

TRIED = (5, 12), (5, 23)  # 5.12, 5.19, 5.22 and 5.23 were run
_PACKAGE = "transformers.generation.continuous_batching"
_WARM_UP = "__warmup_"


def _blocks(cache):
    """In use and all."""
    if hasattr(cache, "compute_free_capacity"):
        return round(cache.num_blocks * (1 - cache.compute_free_capacity())), cache.num_blocks
    return cache.num_blocks - cache.get_num_free_blocks(), cache.num_blocks


class _Hooks:
    def __init__(self, engine):
        self.engine, self.known = engine, set()  # requests that hold a part of the cache

    # Steps.
    def open(self, processor, model, *_):
        engine, inputs = self.engine, processor.inputs_and_outputs
        if hasattr(inputs, "io_pairs"):
            inputs = inputs.io_pairs[inputs.current_pair].host_io
        engine.declare(getattr(model, "config", None), getattr(model, "dtype", ""))
        members = []
        for future in inputs.requests_in_batch:
            state, tokens, length = future.state, future.query_length, future.state.position_offset
            members.append((state.request_id, tokens, length, length <= len(state.initial_tokens)))
            if state.request_id not in self.known:
                self.known.add(state.request_id)
                engine.mark(state.request_id, SCHEDULED, length - tokens)
        engine.open_step(members)
        engine.padded(inputs.num_q_tokens)
        engine.mark("", BLOCKS, *_blocks(processor.cache))

    def close(self, *_):
        self.engine.close_step()

    # Requests.
    def queued(self, _, state, *__):
        if not state._true_initial_tokens and not state.request_id.startswith(_WARM_UP):
            self.engine.queued(state.request_id, len(state.initial_tokens), state.max_new_tokens)

    def forked(self, child, *_, **__):
        self.queued(None, child)
        self.known.add(child.request_id)
        self.engine.mark(child.request_id, SCHEDULED, child.position_offset)

    def output(self, ended, state, token, *_, **__):
        self.engine.mark(state.request_id, OUTPUT, 1)
        if ended:
            self.finished(state, STOPPED if token in state._eos_token_ids else LENGTH)

    def finished(self, state, status):
        made = len(state.generated_tokens)
        if state._true_initial_tokens:  # what it had made before it was preempted counts as its prompt
            made += len(state.initial_tokens) - state._true_initial_tokens
        self.known.discard(state.request_id)
        self.engine.mark(state.request_id, FINISHED, status, made)

    def cancelled(self, states, *_):
        for state in states or ():
            self.finished(state, ABORTED)

    def failed(self, _, router, state, *__, **___):
        self.finished(state, ERROR)

    def offloaded(self, _, manager, *__):
        for name in self.known - manager.scheduler.active_requests.keys():
            self.known.discard(name)
            self.engine.mark(name, PREEMPTED)


def _hook(engine, module):
    hooks = _Hooks(engine)
    requests, scheduler = (sys.modules[f"{_PACKAGE}.{name}"] for name in ("requests", "scheduler"))
    wrap = engine.wrap
    state = requests.RequestState
    for field in ("request_id", "initial_tokens", "position_offset", "_true_initial_tokens", "_eos_token_ids"):
        if field not in state.__dataclass_fields__:
            raise AttributeError(f"RequestState has no {field}")
    wrap(module.ContinuousBatchProcessor, "_generation_step", before=hooks.open, after=hooks.close, step=True)
    wrap(state, "__post_init__", after=hooks.queued)
    wrap(state, "fork", after=hooks.forked)
    wrap(state, "update_and_check_completion", after=hooks.output)
    wrap(scheduler.Scheduler, "clear_cancelled_requests", after=hooks.cancelled)
    for name in ("offload_requests", "offload_one_request"):  # the second until 5.16
        if hasattr(module.OffloadingManager, name):
            wrap(module.OffloadingManager, name, after=hooks.offloaded)
    if hasattr(module, "OutputRouter") and hasattr(module.OutputRouter, "fail_and_deliver"):
        wrap(module.OutputRouter, "fail_and_deliver", after=hooks.failed)


TARGETS = {f"{_PACKAGE}.continuous_api": _hook}
