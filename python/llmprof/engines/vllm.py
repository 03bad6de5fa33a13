"""vLLM's engine (V1). Its scheduler tells what becomes of requests, in the process of the engine's core; each worker opens a
step around execute_model() and the sampling that follows it, on every rank. Written for the documented plugins of the group
vllm.general_plugins, which vLLM loads in all its processes."""
import os
import re

from . import BLOCKS, FINISHED, OUTPUT, PREEMPTED, SCHEDULED, arm

TRIED = (0, 11), (0, 32)  # 0.32 run on a CPU, 0.11 to 0.28 read


def register():
    arm("vllm")


def client_id(name, suffixed):
    """The X-Request-Id of the client, from the id that the engine gives its requests: cmpl-ID-0-1a2b3c4d, chatcmpl-ID-1a2b3c4d.
    Of several prompts in one request the first has the bare id; of several answers each has its own."""
    if suffixed:
        name = re.sub(r"-[0-9a-f]{8}$", "", name)
    choice, prefix, rest = re.match(r"(\d+_)?((?:chat)?cmpl-)?(.*)", name, re.DOTALL).groups()
    if prefix == "cmpl-":
        rest = re.sub(r"-0$", "", rest)
    return (choice or "") + rest


class _Scheduler:
    """Hooks of the engine's core. Finished requests wait for the output tokens that come with them."""

    def __init__(self, engine):
        self.engine, self.ended, self.updating = engine, [], False

    def queued(self, _, scheduler, request, *__, **___):
        if not request.num_computed_tokens and not request.num_output_tokens:
            self.engine.queued(request.request_id, request.num_prompt_tokens, request.max_tokens)

    def preempted(self, _, scheduler, request, *__, **___):
        self.engine.mark(request.request_id, PREEMPTED)

    def scheduled(self, output, scheduler, *_, **__):
        mark, cached = self.engine.mark, output.scheduled_cached_reqs
        for new in output.scheduled_new_reqs:
            mark(new.req_id, SCHEDULED, new.num_computed_tokens)
        resumed = getattr(cached, "resumed_req_ids", None)
        if resumed is None:  # until 0.11: a list beside the ids
            again = cached.resumed_from_preemption
        else:
            again = [name in resumed for name in cached.req_ids] if resumed else ()
        for name, tokens, back in zip(cached.req_ids, cached.num_computed_tokens, again):
            if back:
                if not hasattr(scheduler, "_preempt_request"):
                    mark(name, PREEMPTED)
                mark(name, SCHEDULED, tokens)
        pool = scheduler.kv_cache_manager.block_pool
        mark("", BLOCKS, pool.num_gpu_blocks - pool.get_num_free_blocks(), pool.num_gpu_blocks)

    def before_update(self, *_, **__):
        self.updating = True

    def updated(self, outputs, *_, **__):
        mark = self.engine.mark
        for client in outputs.values():
            for output in client.outputs:
                if output.new_token_ids:
                    mark(output.request_id, OUTPUT, len(output.new_token_ids))
        self.updating = False
        for ended in self.ended:
            mark(*ended)
        self.ended.clear()

    def freed(self, _, scheduler, request, *__, **___):
        reason = request.get_finished_reason()
        status = min(int(reason), 3) if reason is not None else 0
        ended = request.request_id, FINISHED, status, request.num_output_tokens
        if self.updating:
            self.ended.append(ended)
        else:
            self.engine.mark(*ended)


class _Worker:
    """Hooks of one worker."""

    def __init__(self, engine, samples=False):
        self.engine, self.samples = engine, samples  # samples: in a call of its own

    def open(self, output, *_, **__):
        tokens, cached = output.num_scheduled_tokens, output.scheduled_cached_reqs
        if not tokens:
            return
        members = []
        for new in output.scheduled_new_reqs:
            count = tokens[new.req_id]
            members.append((new.req_id, count, new.num_computed_tokens + count, True))
        for name, before in zip(cached.req_ids, cached.num_computed_tokens):
            count = tokens.get(name)
            if count:
                # A part of a prompt, unless there are drafts to be verified.
                members.append((name, count, before + count,
                                count > 1 + len(output.scheduled_spec_decode_tokens.get(name, ()))))
        self.engine.open_step(members)

    def close(self, result, *_, **__):
        if result is not None or not self.samples:
            self.engine.close_step()

    def sampled(self, *_, **__):
        self.engine.close_step()

    def padded(self, *arguments, **named):
        self.engine.padded(named.get("num_tokens") or 0)


def _hook_scheduler(engine, module):
    _name_requests(engine)
    hooks, scheduler = _Scheduler(engine), module.Scheduler
    engine.wrap(scheduler, "add_request", after=hooks.queued)
    if hasattr(scheduler, "_preempt_request"):
        engine.wrap(scheduler, "_preempt_request", after=hooks.preempted)
    engine.wrap(scheduler, "schedule", after=hooks.scheduled)
    engine.wrap(scheduler, "update_from_output", before=hooks.before_update, after=hooks.updated)
    engine.wrap(scheduler, "_free_request", before=lambda *arguments, **named: hooks.freed(None, *arguments, **named))


def _hook_worker(engine, module):
    if not hasattr(module, "WorkerWrapperBase"):  # 0.11.0 has it in the other place
        return
    _name_requests(engine)

    def made(_, wrapper, *__, **___):
        """The worker is there: its class is the platform's."""
        worker = wrapper.worker
        hooks = _Worker(engine, hasattr(worker, "sample_tokens"))
        engine.wrap(worker, "execute_model", before=hooks.open, after=hooks.close, step=True)
        if hooks.samples:
            engine.wrap(worker, "sample_tokens", after=hooks.sampled, step=True)
        model = wrapper.worker.vllm_config.model_config
        engine.declare(getattr(model, "hf_text_config", model.hf_config), model.dtype)
    engine.wrap(module.WorkerWrapperBase, "init_device", after=made)


def _hook_runner(engine, module):
    engine.wrap(module, "set_forward_context", before=_Worker(engine).padded)


def _name_requests(engine):
    suffixed = engine.release() >= (0, 14) and os.environ.get("VLLM_DISABLE_REQUEST_ID_RANDOMIZATION", "0") == "0"
    engine.clean = lambda name: client_id(name, suffixed)


TARGETS = {
    "vllm.v1.core.sched.scheduler": _hook_scheduler,
    "vllm.worker.worker_base": _hook_worker,  # until 0.11.0
    "vllm.v1.worker.worker_base": _hook_worker,
    "vllm.v1.worker.gpu_model_runner": _hook_runner,
    "vllm.v1.worker.gpu.model_runner": _hook_runner,
}
