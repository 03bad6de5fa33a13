"""What the call of a model says of itself: its stage, sequences, new tokens and their length afterwards. Shapes and Python's
own integers are read, and nothing that lies on a device: no value, no wait. What is not clear is left unknown."""
import inspect
import weakref

UNKNOWN = "steps"  # a pass of some kind
# Arguments by the names that models give them. Tokens: integers of batch x tokens, or a vector for each.
_TOKENS = ("decoder_input_ids", "input_ids", "tokens", "token_ids", "idx")
_VECTORS = ("decoder_inputs_embeds", "inputs_embeds")
_CACHES = ("past_key_values", "past_key_value", "cache_params", "cache")
_WRAPPERS = ("_orig_mod", "module", "_fsdp_wrapped_module")


def inner(module):
    """The model inside what torch.compile, DistributedDataParallel and FSDP put around it."""
    for _ in range(8):
        parts = getattr(module, "_modules", None) or {}
        wrapped = next((parts[name] for name in _WRAPPERS if name in parts), None) if len(parts) == 1 else None
        if wrapped is None:
            return module
        module = wrapped
    return module


def parameters(module):
    """The names of forward()'s positional arguments."""
    try:
        return [name for name, parameter in inspect.signature(inner(module).forward).parameters.items()
                if parameter.kind == parameter.POSITIONAL_OR_KEYWORD]
    except Exception:  # noqa: BLE001: a forward() of somebody's own
        return []


def _shape(value, dimensions):
    shape = getattr(value, "shape", ())
    return shape if isinstance(shape, tuple) and len(shape) == dimensions and all(type(n) is int for n in shape) else None


def _tokens(called, config):
    """Sequences and new tokens of each; 0: unknown."""
    wanted = "decoder_" if getattr(config, "is_encoder_decoder", False) else ""
    for names, dimensions in ((_TOKENS, 2), (_VECTORS, 3)):
        for name in names:
            shape = _shape(called.get(name), dimensions) if name.startswith(wanted) else None
            if shape:
                return shape[0], shape[1]
    return 0, 0


def _layer_length(layer):
    for name in ("cumulative_length_int", "cumulative_length"):  # an integer, or a tensor on a device
        if type(getattr(layer, name, None)) is int:
            return getattr(layer, name)
    if getattr(layer, "is_initialized", True) is False:
        return 0
    if type(layer).__name__.startswith("Dynamic"):  # grows with its tokens; others are as long as they may get
        shape = _shape(getattr(layer, "keys", None), 4)
        return shape[2] if shape else None
    return None


def cached(cache):
    """Tokens that a cache holds, None: unknown. Never asks the cache itself: some launch work on the device to answer."""
    if cache is None:
        return 0
    cache = getattr(cache, "self_attention_cache", cache)  # of an encoder and a decoder
    layers = getattr(cache, "layers", None)
    if isinstance(layers, (list, tuple)):
        if not layers:
            return 0
        lengths = (_layer_length(layer) for layer in layers[:8])  # some have no attention
        return next((length for length in lengths if length is not None), None)
    if type(cache).__name__ == "DynamicCache" and isinstance(getattr(cache, "key_cache", None), list):
        cache = [cache.key_cache] if cache.key_cache else []
    if isinstance(cache, (list, tuple)):
        if not cache:
            return 0
        shape = _shape(cache[0][0], 4) if isinstance(cache[0], (list, tuple)) and cache[0] else None
        return shape[2] if shape else None
    return None


class Counted:
    """Lengths of caches that know theirs on the device only. One that is seen before its first use is empty; from then on
    tokens are counted. PyTorch numbers the changes of a tensor: a change that was no call that we saw (a reset) makes the
    length unknown."""

    def __init__(self):
        self._seen = weakref.WeakKeyDictionary()  # cache -> its length, and the number of changes if that is still so

    @staticmethod
    def _changes(cache):
        return cache.layers[0].cumulative_length._version

    def length(self, cache):
        try:
            length, changes = self._seen[cache]
            return length if self._changes(cache) == changes else None
        except Exception:  # noqa: BLE001: not seen, or not such a cache
            return None

    def add(self, cache, before, tokens):
        try:
            fresh = cache.layers[0].is_initialized is False  # its tensor is made by the call
            self._seen[cache] = before + tokens, 1 if fresh else self._changes(cache) + 1
        except Exception:  # noqa: BLE001
            pass


def _most(cache):
    layers = getattr(cache, "layers", None)
    return getattr(layers[0] if layers else cache, "max_cache_len", None)


def _trains(module):
    return module.training and any(parameter.requires_grad for parameter in module.parameters())


def describe(module, names, arguments, named, learns, counted):
    """(stage, batch, tokens, context) of one call; 0: unknown. `names`: of the arguments without a name; `learns`:
    gradients are recorded; `counted`: lengths of caches seen before."""
    called = dict(zip(names, arguments))
    called.update(named)
    config = getattr(inner(module), "config", None)
    batch, tokens = _tokens(called, config)
    if learns and _trains(module):
        return "forward", batch, tokens, tokens
    if not tokens:
        return UNKNOWN, batch, 0, 0
    cache = next((called[name] for name in _CACHES if called.get(name) is not None), None)
    length = cached(cache)
    if length is None:
        length = counted.length(cache)
    if called.get("labels") is not None and not length:
        return "validation", batch, tokens, tokens
    if cache is None:
        use = called.get("use_cache")
        keeps = getattr(config, "use_cache", False) if use is None else use
        return "prefill" if keeps is True and tokens > 1 else UNKNOWN, batch, tokens, tokens
    if length is None:
        mask = _shape(called.get("attention_mask"), 2)  # of cached and new tokens, or of all that fit
        if mask is None or mask[0] != batch or mask[1] < tokens or mask[1] == _most(cache):
            return "decode" if tokens == 1 else UNKNOWN, batch, tokens, 0
        length = mask[1] - tokens
    counted.add(cache, length, tokens)
    if length == 0:
        return "prefill" if tokens > 1 else UNKNOWN, batch, tokens, tokens
    return "decode" if tokens == 1 else UNKNOWN, batch, tokens, length + tokens
