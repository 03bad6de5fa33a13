"""As much of torch.nn.Module and its hooks as llmprof uses, behaving as PyTorch 2 does. Written as a package named torch by
tests that import it."""
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


class Parameter:
    requires_grad = True


class Module:
    training = False

    def parameters(self):
        return [Parameter()]

    def __init__(self, **children):
        self._modules, self._before, self._after = {}, Hooks(), Hooks()
        for name, child in children.items():
            self.add(name, child)

    def add(self, name, child):
        self._modules[name] = child

    def named_modules(self, prefix="", seen=None):
        seen = set() if seen is None else seen
        if self not in seen:
            seen.add(self)
            yield prefix, self
            for name, child in self._modules.items():
                yield from child.named_modules(f"{prefix}.{name}" if prefix else name, seen)

    def register_forward_pre_hook(self, hook):
        return self._before.add(hook)

    def register_forward_hook(self, hook, *, always_call=False):
        assert always_call
        return self._after.add(hook)

    def forward(self, value):
        for child in self._modules.values():
            value = child(value)
        return value + 1

    def __call__(self, *arguments, **named):
        called = []
        try:
            for hook in self._before.values():
                hook(self, arguments)
            result = self.forward(*arguments, **named)
            for hook in self._after.values():
                called.append(hook)
                hook(self, arguments, result)
            return result
        except Exception:
            for hook in self._after.values():
                if hook not in called:
                    hook(self, arguments, None)
            raise


class Node:
    """Of a graph of gradients."""
    made = 0

    def __init__(self):
        Node.made += 1
        self.number, self.hooks = Node.made, []

    def _sequence_nr(self):
        return self.number

    def register_prehook(self, hook):
        self.hooks.append(hook)


class Tensor:
    def __init__(self, *shape, grad_fn=None):
        self.shape, self.grad_fn = shape, grad_fn
