"""Modules of PyTorch models as ranges named by their path in the model, through PyTorch's own forward hooks. Nothing
here imports torch: instrument() uses the model's methods, install() is handed the module once it has been imported."""
import json
import threading
import warnings
import weakref

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


class _Handles:
    """What instrument() returns: remove() takes the hooks out again."""

    def __init__(self, handles):
        self._handles = handles

    def remove(self):
        for handle in self._handles:
            handle.remove()
        self._handles = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.remove()


def instrument(model):
    """Gives every module of a PyTorch model a range while its forward() runs."""
    from . import _attach, _nvtx
    tool = _attach()
    if tool is None:
        return _Handles([])
    import sys
    compiling = _compiling_of(sys.modules.get("torch"))
    handles = []
    for name, module in model.named_modules():
        path = clean_name(name)
        if path:
            before, after = _pair(tool, tool.lasting_event(_nvtx.MODULE, path), compiling)
            handles.append(module.register_forward_pre_hook(before))
            handles.append(_register(module.register_forward_hook, after))
    return _Handles(handles)


def _register(register, hook):
    try:
        return register(hook, always_call=True)  # also when forward() raises
    except TypeError:  # PyTorch 1
        return register(hook)


def _pair(tool, event, compiling):
    push, pop, domain = tool.push, tool.pop, tool.domain

    # While torch.compile traces, nothing happens: the answer of compiling() is a constant to it, so the graph is whole.
    def before(module, arguments):
        if not compiling():
            push(domain, event)

    def after(module, arguments, result):
        if not compiling():
            pop(domain)
    return before, after


class _Names(dict):
    """id of a module -> its event (0: it has no range), for all modules of one model."""
    looks = 0  # how often the model was looked through


class _Open(threading.local):
    """Of a thread: the modules that are running, as pairs of id and event, outermost first."""

    def __init__(self):
        self.stack = []
        self.names = _Names()         # of the outermost
        self.root = lambda: None      # the outermost


class Modules:
    """Names every module from the model it was first called in."""

    def __init__(self, tool, category, compiling=_never, on_root=lambda root: None):
        self._tool, self._category, self._on_root = tool, category, on_root
        self._names = {}  # id of a module -> the _Names it is in
        self._roots = 0
        self._open = _Open()
        self.before, self.after = self._hooks(compiling)

    def _names_of(self, root):
        """Of an outermost module; a part of a known model (a layer that is computed again for its gradients) keeps the
        names it has there."""
        names = self._names.get(id(root))
        if names is None:
            if self._roots >= _MOST_ROOTS:
                return _Names()
            self._roots += 1
            names = _Names()
            self._look_through(root, names)
            self._on_root(root)
        return names

    def _look_through(self, root, names):
        names.looks += 1
        for name, module in root.named_modules():
            if id(module) not in names:
                path = clean_name(name)
                self._enter(module, names, self._tool.lasting_event(self._category, path) if path else 0)

    def _enter(self, module, names, event):
        names[id(module)] = event
        self._forget_with(module, names)
        if id(module) not in self._names:
            self._names[id(module)] = names
            self._forget_with(module, self._names)

    @staticmethod
    def _forget_with(thing, table):
        """An id may come again when its object is gone."""
        weakref.finalize(thing, table.pop, id(thing), None).atexit = False

    def _late(self, module, names):
        """A module that was not there when its model was first called, or does not belong to it."""
        root = self._open.root()
        if root is not None and names.looks < _MOST_LOOKS:
            self._look_through(root, names)
        if id(module) not in names:
            self._enter(module, names, 0)
        return names[id(module)]

    def _close(self, stack, length):
        while len(stack) > length:
            event = stack.pop()
            stack.pop()
            if event:
                self._tool.pop(self._tool.domain)

    def _hooks(self, compiling):
        push, pop, domain, local = self._tool.push, self._tool.pop, self._tool.domain, self._open

        def before(module, arguments):
            if compiling():
                return
            stack, number = local.stack, id(module)
            if stack and stack[0] == number:  # left open: something like KeyboardInterrupt went through
                self._close(stack, 0)
            if not stack:
                local.names = self._names_of(module)
                local.root = weakref.ref(module)
            event = local.names.get(number)
            if event is None:
                event = self._late(module, local.names)
            stack.append(number)
            stack.append(event)
            if event:
                push(domain, event)

        def after(module, arguments, result):
            if compiling():
                return
            stack = local.stack
            if len(stack) >= 2 and stack[-2] == id(module):
                event = stack.pop()
                stack.pop()
                if event:
                    pop(domain)
            elif id(module) in stack[::2]:  # inner ones were left open
                self._close(stack, 2 * stack[::2].index(id(module)))
        return before, after


def _type_of_most(root):
    """The type that most parameters have: a config need not say it, and a model may have been converted since."""
    counts = {}
    for parameter in getattr(root, "parameters", tuple)():
        name = str(parameter.dtype).rsplit(".", 1)[-1]
        counts[name] = counts.get(name, 0) + parameter.numel()
    return max(counts, key=counts.get) if counts else None


def _declare(tool, category, root):
    """The model's own config, as Hugging Face's models have it."""
    config = getattr(root, "config", None)
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


def install(torch):
    """Global hooks for every module of every model; called when torch has been imported."""
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
    # torch.compile warns of global hooks that fire twice; ours know its wrapper, and the program has not asked for them.
    warnings.filterwarnings("ignore", message="Using `torch.compile\\(module\\)` when there are global hooks on modules")
    modules = Modules(tool, _nvtx.MODULE, _compiling_of(torch), on_root)
    torch.nn.modules.module.register_module_forward_pre_hook(modules.before)
    _register(torch.nn.modules.module.register_module_forward_hook, modules.after)
    return modules
