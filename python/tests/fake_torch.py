"""As much of torch.nn.Module and its hooks as the hooks of llmprof use, behaving as PyTorch 2 does. Written as a package
named torch by tests that import it."""
import collections


class Handle:
    def __init__(self, hooks, key):
        self.hooks, self.key = hooks, key

    def remove(self):
        self.hooks.pop(self.key, None)


class Hooks(collections.OrderedDict):
    def add(self, hook):
        key = object()
        self[key] = hook
        return Handle(self, key)


global_before, global_after = Hooks(), Hooks()


def register_module_forward_pre_hook(hook):
    return global_before.add(hook)


def register_module_forward_hook(hook, *, always_call=False):
    assert always_call
    return global_after.add(hook)


class Module:
    def __init__(self, **children):
        self._children, self._before, self._after = {}, Hooks(), Hooks()
        for name, child in children.items():
            self.add(name, child)

    def add(self, name, child):
        self._children[name] = child

    def named_modules(self, prefix="", seen=None):
        seen = set() if seen is None else seen
        if self not in seen:
            seen.add(self)
            yield prefix, self
            for name, child in self._children.items():
                yield from child.named_modules(f"{prefix}.{name}" if prefix else name, seen)

    def register_forward_pre_hook(self, hook):
        return self._before.add(hook)

    def register_forward_hook(self, hook, *, always_call=False):
        assert always_call
        return self._after.add(hook)

    def forward(self, value):
        for child in self._children.values():
            value = child(value)
        return value + 1

    def __call__(self, *arguments):
        called = []
        afters = [*global_after.values(), *self._after.values()]
        try:
            for hook in [*global_before.values(), *self._before.values()]:
                hook(self, arguments)
            result = self.forward(*arguments)
            for hook in afters:
                called.append(hook)
                hook(self, arguments, result)
            return result
        except Exception:
            for hook in afters:
                if hook not in called:
                    hook(self, arguments, None)
            raise
