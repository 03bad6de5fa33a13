"""Modules of PyTorch models as ranges named by their path in the model, and calls of whole models as steps. Nothing here
imports torch: instrument() uses the model's methods, install() is handed the module once it has been imported."""
import contextlib
import json
import threading
import weakref

from . import _pass
from ._backward import Backward, first_node

# Wrappers that stand in the path but not in the checkpoint.
_WRAPPERS = {"_orig_mod", "_fsdp_wrapped_module", "_checkpoint_wrapped_module", "_forward_module"}
# A program that makes new models, or new modules of a model, all the time gets no names for the rest.
_MOST_ROOTS, _MOST_LOOKS = 256, 64


def clean_name(name):
    """The path as in the checkpoint: layers.3.mlp.up_proj. "": the model as a whole."""
    parts = [part for part in name.split(".") if part not in _WRAPPERS]
    while parts and parts[0] == "module":  # DataParallel, DistributedDataParallel
        parts.pop(0)
    if parts and parts[0] in ("model", "transformer"):
        parts.pop(0)
    return ".".join(parts)


def _never():
    return False


def _compiling_of(torch):
    compiler = getattr(torch, "compiler", None)
    return getattr(compiler, "is_compiling", None) or _never


class _Handles(contextlib.ExitStack):
    """What instrument() returns: remove() takes the hooks out again, and so does the end of a `with`."""
    remove = contextlib.ExitStack.close


def instrument(model):
    """Gives every module of a PyTorch model a range while its forward() runs."""
    from . import _attach, _nvtx
    tool = _attach()
    if tool is None:
        return _Handles()
    import sys
    compiling = _compiling_of(sys.modules.get("torch"))
    handles = _Handles()
    for name, module in model.named_modules():
        path = clean_name(name)
        if path:
            before, after = _pair(tool.enter(_nvtx.MODULE, path), tool.leave, compiling)
            handles.callback(module.register_forward_pre_hook(before).remove)
            handles.callback(_register(module.register_forward_hook, after).remove)
    return handles


def _register(register, hook):
    try:
        return register(hook, always_call=True)  # also when forward() raises
    except TypeError:  # PyTorch 1
        return register(hook)


def _pair(enter, leave, compiling):
    # While torch.compile traces, nothing happens: the answer of compiling() is a constant to it, so the graph is whole.
    def before(module, arguments):
        if not compiling():
            enter()

    def after(module, arguments, result):
        if not compiling():
            leave()
    return before, after


def _known_call(self, *args, **kwargs):
    """As PyTorch 2.1 to 2.13 have it."""
    if self._compiled_call_impl is not None:
        return self._compiled_call_impl(*args, **kwargs)
    else:
        return self._call_impl(*args, **kwargs)


def _is_known(call):
    """Whether it does what _known_call() does and nothing else. Then the same can be done in its place, which spares one
    of three calls of Python for every module: most of what we cost."""
    ours, theirs = _known_call.__code__, getattr(call, "__code__", None)
    return theirs is not None and (ours.co_code, ours.co_names) == (theirs.co_code, theirs.co_names)


class _Here(threading.local):
    """Of a thread."""

    def __init__(self):
        self.root = None        # the model that is running, by id
        self.open = []          # the modules that are running while gradients are recorded, outermost first
        self.back = []          # the modules that are open in a backward pass
        self.number = -1        # of that pass
        self.marked = None      # a set while nodes are marked for the backward pass
        self.passes = 0         # forward passes since the last backward pass
        self.payload = 0        # of the last forward pass
        self.steps = {}         # stage -> its range and the function that opens it
        self.updating = False   # an optimizer's step is open


class _Root:
    """A model that the program calls."""

    def __init__(self, module):
        self.module, self.names, self.looks, self.went_back = weakref.ref(module), _pass.parameters(module), 0, False


class Torch:
    """What is used of PyTorch; each part may be missing."""

    def __init__(self, torch=None):
        core = getattr(torch, "_C", None)
        compiler = getattr(torch, "compiler", None)
        self.compiling = _compiling_of(torch)
        self.traced_by_dynamo = getattr(compiler, "is_dynamo_compiling", None) or self.compiling
        self.learns = getattr(torch, "is_grad_enabled", _never)
        self.tracing = getattr(core, "_get_tracing_state", _never)
        self.backward_pass = getattr(core, "_current_graph_task_id", None)  # -1: none
        cuda = getattr(torch, "cuda", None)
        self._ready = getattr(cuda, "is_initialized", _never)
        self._captures = getattr(cuda, "is_current_stream_capturing", _never)
        engine = getattr(getattr(getattr(torch, "autograd", None), "Variable", None), "_execution_engine", None)
        self.at_end = getattr(engine, "queue_callback", None)

    def capturing(self):
        return self._ready() and self._captures()


class Modules:
    """Names every module from the model it was called in, and opens a step for each call of a model."""

    def __init__(self, tool, nvtx, torch=None, on_root=lambda root: None):
        self._tool, self._nvtx, self._on_root = tool, nvtx, on_root
        self._torch = torch or Torch()
        self._quick = {}     # id of a module -> the function that opens its range; models themselves are not in it
        self._known = {}     # id of a module -> that function, or None: it has no range
        self._owner = {}     # id of a module -> id of the model it was named in
        self._roots = {}     # id of a model that the program called -> _Root
        self._watching = []  # not empty: some thread records gradients or goes back, and quick calls take the long way
        self._here, self._counted = _Here(), _pass.Counted()
        known = self._torch.backward_pass and self._torch.at_end
        self._back = Backward(self._here, tool.leave, self._torch.backward_pass, self._torch.at_end) if known else None

    def wrap(self, call):
        """What stands in for the __call__ of all modules. `call` is the one that was there."""
        quick, leave, slowly, watching = self._quick.get, self._tool.leave, self._slowly, self._watching
        traced = self._torch.traced_by_dynamo  # a constant to torch.compile: it sees `call` alone
        self._call = call

        def outside(self, /, *arguments, **named):
            if traced():
                return call(self, *arguments, **named)
            enter = quick(id(self))
            if enter is None or watching:
                return slowly(self, arguments, named)
            enter()
            try:
                return call(self, *arguments, **named)
            finally:
                leave()

        def instead(self, /, *arguments, **named):
            if traced():
                return call(self, *arguments, **named)
            enter = quick(id(self))
            if enter is None or watching:
                return slowly(self, arguments, named)
            enter()
            try:
                if self._compiled_call_impl is not None:
                    return self._compiled_call_impl(*arguments, **named)
                return self._call_impl(*arguments, **named)
            finally:
                leave()
        return instead if _is_known(call) else outside

    # Names.
    def _look_through(self, module, root):
        """Names what is in a model. A part that was called alone before gets its name in the whole."""
        root.looks += 1
        try:
            found = list(module.named_modules())
        except Exception:  # noqa: BLE001: a model of somebody's own, in the middle of being made
            return
        ids = {id(part) for _, part in found}
        for name, part in found:
            owner = self._owner.get(id(part))
            if owner == id(module) or (owner is not None and owner not in ids):
                continue
            path = clean_name(name)
            if owner is None:
                self._forget_with(part)
            self._owner[id(part)] = id(module)
            enter = self._known[id(part)] = self._tool.enter(self._nvtx.MODULE, path) if path else None
            if enter is not None and id(part) not in self._roots:
                self._quick[id(part)] = enter

    def _forget_with(self, module):
        """An id may come again when its object is gone."""
        def forget(number):
            for table in (self._quick, self._known, self._owner, self._roots):
                table.pop(number, None)
        weakref.finalize(module, forget, id(module)).atexit = False

    def _named(self, module):
        """The function of a module inside the model that is running; None: it has no range."""
        number = id(module)
        if number not in self._known:  # it was not there when its model was first called, or does not belong to it
            root = self._roots.get(self._here.root)
            whole = root and root.module()
            if whole is not None and root.looks < _MOST_LOOKS:
                self._look_through(whole, root)
            if number not in self._known:
                self._known[number], self._owner[number] = None, self._here.root
                self._forget_with(module)
        return self._known[number]

    def _root_of(self, module):
        """Of a model that the program calls; None: it is a part of one, or there are too many."""
        number = id(module)
        root = self._roots.get(number)
        if root is None and self._known.get(number) is None and len(self._roots) < _MOST_ROOTS:
            root = self._roots[number] = _Root(module)
            if number not in self._known:
                self._look_through(module, root)
                self._on_root(module)
        return root

    # Calls.
    def _slowly(self, module, arguments, named):
        here = self._here
        if here.root is not None:
            enter = self._quick.get(id(module)) or self._named(module)
            return self._within(module, enter, arguments, named)
        if self._torch.compiling() or self._torch.tracing() or getattr(module, "_is_replica", False):
            return self._call(module, *arguments, **named)
        if here.back and self._torch.backward_pass() == -1:  # an exception ended it
            self._back.close()
        if here.back:  # a layer that is computed again for its gradients
            kept = self._back.suspend()
            try:
                return self._within(module, self._known.get(id(module)), arguments, named)
            finally:
                self._back.resume(kept)
        root = self._root_of(module)
        if root is None:
            return self._within(module, self._known.get(id(module)), arguments, named)
        return self._whole(module, root, arguments, named)

    def _within(self, module, enter, arguments, named):
        if enter is None:
            return self._call(module, *arguments, **named)
        marked = self._here.marked
        if marked is None:
            enter()
            try:
                return self._call(module, *arguments, **named)
            finally:
                self._tool.leave()
        modules, mark = self._here.open, self._back.mark
        mark(arguments or named, marked, modules)
        modules.append(enter)
        enter()
        try:
            result = self._call(module, *arguments, **named)
            mark(result, marked, modules)
            return result
        finally:
            self._tool.leave()
            modules.pop()

    def _whole(self, module, root, arguments, named):
        here = self._here
        learns = self._torch.learns()
        step = self._describe(module, root, arguments, named, learns)
        if step is None:
            return self._call(module, *arguments, **named)
        here.root = id(module)
        opened = not self._torch.capturing()  # what a graph captures does not run
        if opened:
            self.open_step(*step)
        learns = learns and self._back is not None
        marks = learns and (step[0] == "forward" or root.went_back)  # a program may have forgotten torch.no_grad()
        if marks:
            here.marked = set()
            self._watching.append(None)
        try:
            result = self._call(module, *arguments, **named)
            if learns:
                self._passed(result, step, here.marked)
            return result
        finally:
            if marks:
                here.marked = None
                self._watching.pop()
            if opened:
                self._tool.leave()
            here.root = None

    def _passed(self, result, step, marked):
        """A backward pass may follow."""
        here = self._here
        try:
            if first_node(result) is None:
                return
        except Exception:  # noqa: BLE001: as in Backward.mark()
            return
        here.passes += 1
        here.payload = self._payload(*step[1:])
        if marked is not None:
            self._back.mark(result, marked, here.open)

    def _describe(self, module, root, arguments, named, learns):
        """None: too small to be a model."""
        try:
            step = _pass.describe(module, root.names, arguments, named, learns, self._counted)
        except Exception:  # noqa: BLE001: arguments of somebody's own must not stop the program
            step = (_pass.UNKNOWN, 0, 0, 0)
        return step if module._modules or step[2] else None

    # Steps.
    @staticmethod
    def _payload(batch, tokens, context):
        from . import _payload
        return _payload(batch, tokens, context)

    def open_step(self, stage, batch=0, tokens=0, context=0, payload=0):
        """One of this thread; leave() closes it."""
        known = self._here.steps.get(stage)
        if known is None:
            known = self._here.steps[stage] = self._tool.own_range(self._nvtx.PASS, stage)
        place, enter = known
        place.event.payload = payload or self._payload(batch, tokens, context)
        place.event.payload_type = 1 if place.event.payload else 0
        enter()

    def wrap_backward(self, backward):
        """What stands in for torch.autograd.backward, which every tensor.backward() calls."""
        here, compiling, watching, leave = self._here, self._torch.compiling, self._watching, self._tool.leave

        def wrapped(*arguments, **named):
            if compiling() or here.root is not None or here.back:  # traced, or inside another pass
                return backward(*arguments, **named)
            payload = here.payload if here.passes == 1 else 0  # of several passes: nobody knows how much of which
            if here.passes:
                for root in list(self._roots.values()):
                    root.went_back = True
            here.passes = 0
            watching.append(None)
            self.open_step("backward", payload=payload)
            try:
                return backward(*arguments, **named)
            finally:
                if self._back is not None:
                    self._back.close()
                leave()
                watching.pop()
        return wrapped

    def before_update(self, optimizer, arguments, named):
        if self._torch.compiling():
            return
        if self._here.updating:  # the last one raised
            self._tool.leave()
        self._here.updating = True
        self.open_step("optimizer")

    def after_update(self, optimizer, arguments, named):
        if not self._torch.compiling() and self._here.updating:
            self._here.updating = False
            self._tool.leave()


def _type_of_most(root):
    """The type that most parameters have: a config need not say it, and a model may have been converted since."""
    counts = {}
    for parameter in getattr(root, "parameters", tuple)():
        name = str(parameter.dtype).rsplit(".", 1)[-1]
        counts[name] = counts.get(name, 0) + parameter.numel()
    return max(counts, key=counts.get) if counts else None


def _declare(tool, category, root):
    """The model's own config, as Hugging Face's models have it."""
    config = getattr(_pass.inner(root), "config", None)
    try:
        if hasattr(config, "to_dict") and getattr(config, "model_type", ""):
            fields = config.to_dict()
            fields["dtype"] = _type_of_most(root) or fields.get("dtype")
            tool.mark(category, json.dumps(fields, default=str))
    except Exception:  # noqa: BLE001: a config of somebody's own must not stop the program
        pass


def _allocator(torch):
    try:
        if not torch.version.cuda:
            return ""
        backend = torch.cuda.get_allocator_backend()
    except Exception:  # noqa: BLE001: an older torch, or one without CUDA
        return ""
    return (f"allocator: PyTorch's caching allocator ({backend}) takes device memory in segments and hands out parts of "
            "them; allocations are segments")


def _run_as_it_is(torch, function):
    """torch.compile leaves the function alone and goes on with what it calls, as with the one that was there."""
    try:
        frames = torch._C._dynamo.eval_frame
        if hasattr(frames, "skip_code"):  # until PyTorch 2.6
            frames.skip_code(function.__code__)
        else:
            frames.set_code_exec_strategy(function.__code__, frames._FrameExecStrategy(
                frames._FrameAction.SKIP, frames._FrameAction.DEFAULT))
    except Exception:  # noqa: BLE001: it is then traced through, with the same result
        pass


def install(torch):
    """Stands in for the call of every module of every model; called when torch has been imported."""
    from . import _attach, _nvtx
    tool = _attach()
    if tool is None:
        return None
    said = []

    def on_root(root):
        if not said:  # with the first model: a process that only imports torch says nothing
            said.append(_allocator(torch))
            if said[0]:
                tool.mark(_nvtx.NOTE, said[0])
        _declare(tool, _nvtx.MODEL, root)
    modules = Modules(tool, _nvtx, Torch(torch), on_root)
    module = torch.nn.modules.module.Module
    module.__call__ = modules.wrap(module.__call__)
    _run_as_it_is(torch, module.__call__)
    if hasattr(torch, "autograd"):
        torch.autograd.backward = modules.wrap_backward(torch.autograd.backward)
    import sys
    optimizer = sys.modules.get(torch.__name__ + ".optim.optimizer")  # the package hides its name
    if hasattr(optimizer, "register_optimizer_step_pre_hook"):
        optimizer.register_optimizer_step_pre_hook(modules.before_update)
        optimizer.register_optimizer_step_post_hook(modules.after_update)
    return modules
