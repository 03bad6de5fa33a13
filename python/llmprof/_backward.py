"""Modules of the backward pass. PyTorch's own backward hooks put functions of theirs into the graph, which changes what may
be done in place; here nodes that are there are told to say when they begin. Where the forward pass enters or leaves a
module, the node of the tensor that goes in or comes out is marked with the modules that were open then: the engine runs
nodes in the reverse of the order in which they were made, so the mark that was passed last says where the backward pass is.

A mark holds no tensor and no node, and goes with its node."""
import functools


def first_node(value, depth=2):
    """The node of the first tensor in there that has one."""
    node = getattr(value, "grad_fn", None)
    if node is not None:
        return node
    if depth:
        items = value.values() if isinstance(value, dict) else value if isinstance(value, (tuple, list)) else ()
        for item in items:
            node = first_node(item, depth - 1)
            if node is not None:
                return node
    return None


class Backward:
    """`here` is of the thread: `open`, the modules that run forward; `back`, those that are open in a backward pass;
    `number`, of that pass. Modules are the functions that open their ranges. `current()`: the number of the pass that this
    thread is in; `at_end(function)`: it is called when that ends."""

    def __init__(self, here, leave, current, at_end):
        self._here, self._leave, self._current, self._at_end = here, leave, current, at_end

    def mark(self, value, marked, modules):
        """Before a module begins, with its first argument; before it ends, with its result. `marked`: nodes that are, by
        number: an inner module that ends with the same node comes first, and says more."""
        try:
            node = first_node(value)
            if node is not None:
                number = node._sequence_nr()
                if number not in marked:
                    marked.add(number)
                    node.register_prehook(functools.partial(self._move, tuple(modules)))
        except Exception:  # noqa: BLE001: a tensor may refuse to say its node; the program need not have asked
            pass

    def _move(self, modules, _gradients):
        """The backward pass comes to these modules, outermost first. On the engine's thread."""
        here, leave = self._here, self._leave
        if here.open:  # gradients that a module takes itself
            return
        back = here.back
        number = self._current()
        if here.number != number:
            self.close()  # of several threads of the engine, only the one that ends a pass hears of it
            here.number = number
            self._at_end(self.close)
        same = 0
        for old, new in zip(back, modules):
            if old is not new:
                break
            same += 1
        for _ in range(len(back) - same):
            leave()
        del back[same:]
        for enter in modules[same:]:
            enter()
            back.append(enter)

    def _shorten(self, length):
        back = self._here.back
        while len(back) > length:
            back.pop()
            self._leave()

    def close(self):
        self._shorten(0)

    def suspend(self):
        """A module runs forward again in the middle of a backward pass: what to give to resume() after it."""
        kept = list(self._here.back)
        self._shorten(0)
        return kept

    def resume(self, kept):
        for enter in kept:
            enter()
        self._here.back[:] = kept
