"""The package against a tool that writes down what it hears, and the hook that `record --modules` puts into a program."""
import ctypes
import gc
import io
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import types
import unittest
from unittest import mock

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]
import fake_torch  # noqa: E402
import llmprof  # noqa: E402
from llmprof import _modules, _nvtx, _pass, engines  # noqa: E402
from llmprof.engines import vllm as engines_of_vllm  # noqa: E402


class Ears:
    """Stands for a tool: the functions a Tool needs, in Python."""

    def __init__(self):
        self.heard = []

    def own_range(self, category, text):
        place = _nvtx._RangeOfDomain(7, _nvtx._Event(3, ctypes.sizeof(_nvtx._Event), category))

        def enter():
            bits = place.event.payload
            size = f" {bits & 0xFFFF}x{bits >> 16 & 0xFFFFFF}@{bits >> 40}" if place.event.payload_type else ""
            self.heard.append(("push", text + size, threading.get_ident()))
        return place, enter

    def enter(self, category, text):
        return self.own_range(category, text)[1]

    def leave(self):
        self.heard.append(("pop", "", threading.get_ident()))

    def mark(self, category, text):
        self.heard.append(("mark", text, category))

    def paths(self):
        """What was open at each push."""
        stacks, out = {}, []
        for what, text, thread in self.heard:
            stack = stacks.setdefault(thread, [])
            if what == "push":
                stack.append(text)
                out.append("/".join(stack))
            elif what == "pop":
                stack.pop()
        assert not any(stacks.values()), f"left open: {stacks}"
        return out


def llama(layers=2):
    def layer():
        return fake_torch.Module(self_attn=fake_torch.Module(q_proj=fake_torch.Module()),
                                 mlp=fake_torch.Module(up_proj=fake_torch.Module()))
    decoder = fake_torch.Module(layers=ModuleList([layer() for _ in range(layers)]))
    return fake_torch.Module(model=decoder, lm_head=fake_torch.Module())


class ModuleList(fake_torch.Module):
    def __init__(self, children):
        super().__init__(**{str(i): child for i, child in enumerate(children)})

    def __call__(self, value):  # a container: its parent calls the children
        for child in self._modules.values():
            value = child(value)
        return value


EXPECTED = [
    "layers.0", "layers.0/layers.0.self_attn", "layers.0/layers.0.self_attn/layers.0.self_attn.q_proj",
    "layers.0/layers.0.mlp", "layers.0/layers.0.mlp/layers.0.mlp.up_proj",
    "layers.1", "layers.1/layers.1.self_attn", "layers.1/layers.1.self_attn/layers.1.self_attn.q_proj",
    "layers.1/layers.1.mlp", "layers.1/layers.1.mlp/layers.1.mlp.up_proj", "lm_head"]


IN_A_STEP = ["steps", *("steps/" + path for path in EXPECTED)]
ONE_LAYER = IN_A_STEP[:6] + ["steps/lm_head"]


class Names(unittest.TestCase):
    def test_paths_are_those_of_the_checkpoint(self):
        for name, path in (("", ""), ("model", ""), ("model.layers.3.mlp.up_proj", "layers.3.mlp.up_proj"),
                           ("transformer.h.0.attn", "h.0.attn"), ("lm_head", "lm_head"),
                           ("module.model.norm", "norm"), ("_orig_mod.model.layers.0", "layers.0"),
                           ("_fsdp_wrapped_module.model.layers.0._fsdp_wrapped_module.mlp", "layers.0.mlp"),
                           ("model.language_model.layers.1", "language_model.layers.1"), ("encoder.model", "encoder.model")):
            self.assertEqual(_modules.clean_name(name), path, name)


class Instead(unittest.TestCase):
    """What stands in for the call of every module."""

    def setUp(self):
        self.ears, self.roots, self.torch = Ears(), [], _modules.Torch()
        self.compiling = False
        self.torch.compiling = self.torch.traced_by_dynamo = lambda: self.compiling
        self.ends = []
        self.number = 1
        self.torch.at_end, self.torch.backward_pass = self.ends.append, lambda: self.number
        self.modules = _modules.Modules(self.ears, _nvtx, self.torch, self.roots.append)
        call = fake_torch.Module.__call__
        fake_torch.Module.__call__ = self.modules.wrap(call)
        self.addCleanup(setattr, fake_torch.Module, "__call__", call)


class Calls(Instead):
    def test_every_module_has_its_path(self):
        model = llama()
        model(0)
        self.assertEqual(self.ears.paths(), IN_A_STEP)
        self.assertEqual(self.roots, [model])
        model(0)
        self.assertEqual(self.ears.paths(), IN_A_STEP * 2)
        self.assertEqual(self.roots, [model])

    def test_a_part_called_alone_keeps_its_name_and_is_no_step(self):
        model = llama()
        model(0)
        self.ears.heard.clear()
        model._modules["model"]._modules["layers"]._modules["1"](0)
        self.assertEqual(self.ears.paths(), EXPECTED[5:10])

    def test_the_decoder_alone_has_the_same_names(self):
        model = llama()
        model._modules["model"](0)
        self.assertEqual(self.ears.paths(), IN_A_STEP[:-1])
        model(0)
        self.assertEqual(self.ears.paths()[11:], IN_A_STEP)
        self.ears.heard.clear()
        model._modules["model"](0)
        self.assertEqual(self.ears.paths(), IN_A_STEP[:-1])

    def test_a_part_that_was_called_first_gets_its_name_in_the_whole(self):
        vision = fake_torch.Module(patches=fake_torch.Module())
        whole = fake_torch.Module(vision=vision, head=fake_torch.Module())
        vision(0)
        whole(0)
        self.assertEqual(self.ears.paths(), ["steps", "steps/patches", "steps", "steps/vision",
                                             "steps/vision/vision.patches", "steps/head"])

    def test_models_one_after_the_other(self):
        text, image = llama(1), fake_torch.Module(blocks=fake_torch.Module())
        for _ in range(2):
            text(0)
            image(0)
        self.assertEqual(self.ears.paths(), (ONE_LAYER + ["steps", "steps/blocks"]) * 2)

    def test_a_module_without_parts_is_no_model(self):
        loss = fake_torch.Module()
        self.assertEqual(loss(1), 2)
        self.assertEqual(self.ears.heard, [])

    def test_nothing_while_compiling(self):
        self.compiling = True
        llama()(0)
        self.assertEqual(self.ears.heard, [])

    def test_arguments_of_any_name(self):
        class Odd(fake_torch.Module):
            def forward(self, value, module=0, **named):
                return value, module, named
        model = fake_torch.Module(odd=Odd())
        model.forward = lambda: model._modules["odd"](1, module=2, self_=3, call=4)
        for _ in range(2):
            self.assertEqual(model(), (1, 2, {"self_": 3, "call": 4}))

    def test_exceptions_close_what_they_leave(self):
        model = llama()
        inner = model._modules["model"]._modules["layers"]._modules["0"]._modules["mlp"]._modules["up_proj"]
        for error in (ZeroDivisionError, KeyboardInterrupt):
            def forward(value, error=error):
                raise error
            inner.forward = forward
            self.ears.heard.clear()
            with self.assertRaises(error):
                model(0)
            self.assertEqual(self.ears.paths(), IN_A_STEP[:6])
        del inner.forward
        self.ears.heard.clear()
        model(0)
        self.assertEqual(self.ears.paths(), IN_A_STEP)

    def test_modules_that_come_later(self):
        model = llama(1)
        model(0)
        self.ears.heard.clear()
        model.add("value_head", fake_torch.Module())
        model(0)
        self.assertEqual(self.ears.paths(), ONE_LAYER + ["steps/value_head"])

    def test_a_module_that_is_in_no_model(self):
        model, hidden = llama(1), fake_torch.Module()
        model._modules["lm_head"].forward = hidden
        for _ in range(100):
            model(0)
        self.assertEqual(self.ears.paths(), ONE_LAYER * 100)

    def test_models_are_let_go(self):
        for _ in range(20):
            llama(1)(0)
        self.roots.clear()
        gc.collect()
        self.assertEqual([self.modules._quick, self.modules._known, self.modules._owner, self.modules._roots], [{}] * 4)
        self.assertEqual(self.ears.paths(), ONE_LAYER * 20)

    def test_threads(self):
        model = llama()
        threads = [threading.Thread(target=lambda: [model(0) for _ in range(20)]) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(sorted(self.ears.paths()), sorted(IN_A_STEP * 80))

    def test_a_call_that_is_captured_is_no_step(self):
        self.torch.capturing = lambda: True
        llama()(0)
        self.assertEqual(self.ears.paths(), EXPECTED)

    def test_steps_say_their_size(self):
        class Decoder(fake_torch.Module):
            def forward(self, input_ids, past_key_values=None, use_cache=None):
                return 0
        model = Decoder(head=fake_torch.Module())
        keys = fake_torch.Tensor(2, 4, 24, 16)
        model(fake_torch.Tensor(2, 24), use_cache=True)
        model(fake_torch.Tensor(2, 1), past_key_values=[[keys, keys]])
        self.assertEqual(self.ears.paths(), ["prefill 2x24@24", "decode 2x1@25"])

    def test_an_optimizer_that_raises(self):
        self.modules.before_update(None, (), {})
        self.modules.before_update(None, (), {})
        self.modules.after_update(None, (), {})
        self.assertEqual(self.ears.paths(), ["optimizer", "optimizer"])


class Learner(fake_torch.Module):
    """A module of one node, and one for itself in front of its parts."""

    def forward(self, value):
        for child in self._modules.values():
            value = child(fake_torch.Tensor(grad_fn=self.node()))
        return value if self._modules else fake_torch.Tensor(grad_fn=self.node())

    def node(self):
        node = fake_torch.Node()
        NODES.append(node)
        return node


NODES = []


class BackwardPass(Instead):
    def setUp(self):
        super().setUp()
        NODES.clear()
        self.torch.learns = lambda: True
        self.model = Learner(a=Learner(b=Learner()), c=Learner())
        self.model.training = True

    def engine(self, *_):
        while NODES:
            for hook in NODES.pop().hooks:
                hook(None)
        self.ends.pop()()

    def test_modules_in_reverse_and_what_is_between_them(self):
        self.model(fake_torch.Tensor(2, 3))
        self.assertEqual(self.ears.paths(), ["forward", "forward/a", "forward/a/a.b", "forward/c"])
        self.ears.heard.clear()
        self.modules.wrap_backward(self.engine)()
        self.assertEqual(self.ears.paths(), ["backward", "backward/c", "backward/a", "backward/a/a.b"])
        self.assertEqual(self.modules._watching, [])

    def test_on_another_thread(self):
        self.model(fake_torch.Tensor(2, 3))
        self.ears.heard.clear()

        def elsewhere():
            thread = threading.Thread(target=self.engine)
            thread.start()
            thread.join()
        self.modules.wrap_backward(elsewhere)()
        self.assertEqual(self.ears.paths(), ["backward", "c", "a", "a/a.b"])

    def test_a_thread_that_does_not_hear_of_the_end(self):
        self.model(fake_torch.Tensor(2, 3))
        for _ in range(2):  # another thread ends the pass
            self.ears.heard.clear()
            for node in NODES[:1:-1]:
                for hook in node.hooks:
                    hook(None)
            self.number += 1
        self.assertEqual([what for what, _, _ in self.ears.heard][:3], ["pop", "pop", "push"])
        self.assertEqual(len(self.ends), 2)

    def test_a_pass_that_was_left_open(self):
        self.model(fake_torch.Tensor(2, 3))
        NODES[-1].hooks[0](None)  # torch.autograd.grad, and an exception
        self.number = -1
        self.model(fake_torch.Tensor(2, 3))
        self.assertEqual(self.ears.paths()[4:6], ["c", "forward"])

    def test_a_module_that_is_computed_again(self):
        self.model(fake_torch.Tensor(2, 3))
        self.ears.heard.clear()
        part = self.model._modules["a"]
        NODES[-1].hooks.append(lambda _: (part(fake_torch.Tensor()), NODES.__delitem__(slice(4, None))))
        self.modules.wrap_backward(self.engine)()
        self.assertEqual(self.ears.paths()[:5], ["backward", "backward/c", "backward/a", "backward/a/a.b", "backward/c"])

    def test_one_that_raises(self):
        self.model(fake_torch.Tensor(2, 3))

        def fails():
            NODES[-1].hooks[0](None)
            raise ValueError
        with self.assertRaises(ValueError):
            self.modules.wrap_backward(fails)()
        self.ears.paths()
        self.assertEqual(self.modules._watching, [])

    def test_a_tensor_that_refuses(self):
        class Refuses:
            @property
            def grad_fn(self):
                raise RuntimeError("a view that was changed in place")
        self.model.forward = lambda value: Refuses()
        self.model._modules["c"].forward = self.model._modules["a"]
        self.assertIsInstance(self.model(Refuses()), Refuses)
        del self.model.forward
        self.model(fake_torch.Tensor(2, 3))
        self.assertEqual(self.modules._watching, [])
        self.ears.paths()

    def test_a_program_that_forgot_no_grad_pays_nothing(self):
        self.model.training = False
        self.model(fake_torch.Tensor(2, 3))
        self.assertEqual([node.hooks for node in NODES], [[]] * len(NODES))
        self.modules.wrap_backward(lambda: None)()  # it had not
        self.model(fake_torch.Tensor(2, 3))
        self.assertTrue(any(node.hooks for node in NODES))


class Passes(unittest.TestCase):
    """Stages and sizes by arguments."""

    def test_a_cache_that_knows_its_length_on_the_device_only(self):
        class Length:
            _version = 0
        class StaticLayer:
            is_initialized, cumulative_length = False, Length()
        class Cache:
            layers = [StaticLayer()]
        cache, counted, layer = Cache(), _pass.Counted(), Cache.layers[0]

        def called(tokens):
            done = _pass.describe(fake_torch.Module(), [], (), dict(input_ids=fake_torch.Tensor(1, tokens),
                                                                    past_key_values=cache), False, counted)
            layer.is_initialized = True
            layer.cumulative_length._version += 1
            return done
        self.assertEqual([called(7), called(1), called(1), called(2)],
                         [("prefill", 1, 7, 7), ("decode", 1, 1, 8), ("decode", 1, 1, 9), ("steps", 1, 2, 11)])
        layer.cumulative_length._version += 1  # a reset
        self.assertEqual([called(7), called(1)], [("steps", 1, 7, 0), ("decode", 1, 1, 0)])

    def described(self, training=False, learns=False, config=None, **named):
        module = fake_torch.Module()
        module.training, module.config = training, config
        return _pass.describe(module, [], (), named, learns, _pass.Counted())

    def test_stages(self):
        class Config:
            use_cache = True
        class Both(Config):
            is_encoder_decoder = True
        class Layer:
            is_initialized = True
        class DynamicLayer(Layer):
            keys = fake_torch.Tensor(2, 4, 24, 16)
        class StaticLayer(Layer):
            keys, cumulative_length, max_cache_len = fake_torch.Tensor(2, 4, 512, 16), fake_torch.Tensor(), 512
        class Cache:
            def __init__(self, *layers):
                self.layers = list(layers)

            def get_seq_length(self):
                raise AssertionError("asked")
        tensor = fake_torch.Tensor
        prompt, token, some = tensor(2, 24), tensor(2, 1), tensor(2, 5)
        grown, static = Cache(DynamicLayer()), Cache(StaticLayer())
        for expected, options in (
                (("prefill", 2, 24, 24), dict(input_ids=prompt, use_cache=True)),
                (("prefill", 2, 24, 24), dict(input_ids=prompt, config=Config())),
                (("prefill", 2, 24, 24), dict(input_ids=prompt, past_key_values=Cache())),
                (("prefill", 2, 24, 24), dict(inputs_embeds=tensor(2, 24, 64), past_key_values=Cache())),
                (("steps", 2, 24, 24), dict(input_ids=prompt)),  # no cache: may be a score, may be a pass per token
                (("steps", 2, 24, 24), dict(input_ids=prompt, config=Config(), use_cache=False)),
                (("validation", 2, 24, 24), dict(input_ids=prompt, labels=prompt, config=Config())),
                (("decode", 2, 1, 25), dict(input_ids=token, past_key_values=grown)),
                (("decode", 2, 1, 0), dict(input_ids=token, past_key_values=static)),
                (("decode", 2, 1, 30), dict(input_ids=token, past_key_values=static, attention_mask=tensor(2, 30))),
                (("decode", 2, 1, 0), dict(input_ids=token, past_key_values=static, attention_mask=tensor(2, 512))),
                (("steps", 2, 5, 29), dict(input_ids=some, past_key_values=grown)),  # a chunk, or tokens to be verified
                (("steps", 2, 5, 0), dict(input_ids=some, past_key_values=static)),
                (("steps", 2, 1, 1), dict(input_ids=token, use_cache=True)),
                (("steps", 0, 0, 0), dict(pixel_values=tensor(2, 3, 224, 224))),
                (("steps", 0, 0, 0), dict(input_ids=tensor(24))),  # rows of many requests
                (("steps", 0, 0, 0), dict(input_ids=prompt, config=Both())),
                (("decode", 2, 1, 25), dict(input_ids=prompt, decoder_input_ids=token, past_key_values=grown, config=Both())),
                (("forward", 2, 24, 24), dict(input_ids=prompt, training=True, learns=True)),
                (("forward", 0, 0, 0), dict(x=tensor(2, 3, 224, 224), training=True, learns=True)),
                (("steps", 2, 24, 24), dict(input_ids=prompt, training=True)),
                (("prefill", 2, 24, 24), dict(input_ids=prompt, learns=True, config=Config()))):
            self.assertEqual(self.described(**options), expected, options)


class Instrument(unittest.TestCase):
    def test_one_model_and_back(self):
        ears, before = Ears(), llmprof._tool
        llmprof._tool = ears
        try:
            model, other = llama(), llama()
            with llmprof.instrument(model):
                model(0)
                other(0)
            self.assertEqual(ears.paths(), EXPECTED)
            model(0)
            self.assertEqual(ears.paths(), EXPECTED)
        finally:
            llmprof._tool = before

    def test_nobody_listens(self):
        model = llama()
        llmprof.instrument(model).remove()
        self.assertEqual(model(0), llama()(0))


class Ranges(unittest.TestCase):
    def test_nobody_listens(self):
        self.assertFalse(llmprof.listening())
        with llmprof.range("x", kind="step", batch=1) as inside:
            self.assertIs(inside, llmprof.stage("y"))
        self.assertIs(llmprof.range("x")(len), len)
        llmprof.model({"model_type": "llama"})

    def test_integers_fit_their_bits(self):
        self.assertEqual(llmprof._payload(2, 128, 640), 2 | 128 << 16 | 640 << 40)
        self.assertEqual(llmprof._payload(1 << 20, 1 << 30, -5), 0xFFFF | 0xFFFFFF << 16)


class Hook(unittest.TestCase):
    """Programs started as `llmprof record --modules` starts them, with a torch that is the fake one."""

    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory())) if hasattr(self, "enterContext") \
            else pathlib.Path(tempfile.mkdtemp())
        nn = self.folder / "torch/nn/modules"
        nn.mkdir(parents=True)
        (self.folder / "torch/__init__.py").write_text("from . import nn\nloaded = True\n")
        (self.folder / "torch/nn/__init__.py").write_text("from . import modules\n")
        (nn / "__init__.py").write_text("from . import module\n")
        (nn / "module.py").write_text((ROOT / "tests/fake_torch.py").read_text())

    def run_python(self, code, *options, path="", **environment):
        hook = str(ROOT / "hook")
        value = os.pathsep.join(filter(None, [hook, str(self.folder), path]))
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "LLMPROF", "NVTX"))}
        done = subprocess.run([sys.executable, *options, "-c", code], capture_output=True, text=True, timeout=60,
                              env={**kept, "PYTHONPATH": value, "PYTHONDONTWRITEBYTECODE": "1",
                                   "LLMPROF_MODULES": "1", **environment})
        self.assertEqual(done.returncode, 0, done.stderr)
        return done

    def test_torch_is_imported_as_always(self):
        done = self.run_python("import sys, torch; print(torch.loaded, torch.__spec__.loader.__class__.__name__, "
                               "'_llmprof' in sys.modules, 'exec_module' in vars(torch.__loader__), "
                               "[f for f in sys.meta_path if '_Finder' in str(f)])")
        self.assertEqual(done.stdout, "True SourceFileLoader True False []\n")
        self.assertEqual(done.stderr, "")

    def test_nothing_happens_without_torch(self):
        done = self.run_python("import sys; print(sorted(m for m in sys.modules if m in ('ctypes', 'torch', '_llmprof')), "
                               "any(p.endswith('/hook') for p in sys.path))")
        self.assertEqual(done.stdout, "[] False\n")

    def test_modules_inherit_it(self):
        done = self.run_python("import subprocess, sys; subprocess.run([sys.executable, '-c', "
                               "'import sys, torch; print(\"_llmprof\" in sys.modules)'], check=True)")
        self.assertEqual(done.stdout, "True\n")

    def test_the_sitecustomize_of_the_user_runs(self):
        other = self.folder / "site"
        other.mkdir()
        (other / "sitecustomize.py").write_text("import sys\nsys.from_user = __file__\n")
        done = self.run_python("import sys, sitecustomize; print(sys.from_user == sitecustomize.__file__)", path=str(other))
        self.assertEqual(done.stdout, "True\n")

    def test_a_sitecustomize_that_fails_says_so_as_always(self):
        other = self.folder / "site"
        other.mkdir()
        (other / "sitecustomize.py").write_text("1 // 0\n")
        done = self.run_python("import torch; print(torch.loaded)", path=str(other))
        self.assertIn("ZeroDivisionError", done.stderr)
        self.assertEqual(done.stdout, "True\n")

    def test_an_import_of_torch_that_fails(self):
        (self.folder / "torch/__init__.py").write_text("raise ImportError('no such thing')\n")
        done = self.run_python("try:\n  import torch\nexcept ImportError as error:\n  print(error)")
        self.assertEqual((done.stdout, done.stderr), ("no such thing\n", ""))

    def test_isolated_programs_are_left_alone(self):
        for option in ("-I", "-S", "-E"):
            done = self.run_python("import sys; print('sitecustomize' in sys.modules and "
                                   "'hook' in str(sys.modules['sitecustomize']))", option)
            self.assertEqual(done.stdout, "False\n", option)

    def test_what_is_looked_for_before_it_is_imported(self):
        done = self.run_python("import importlib.util; importlib.util.find_spec('torch'); import sys, torch; "
                               "print('_llmprof' in sys.modules)")
        self.assertEqual(done.stdout, "True\n")

    def test_an_import_that_works_the_second_time(self):
        (self.folder / "torch/__init__.py").write_text("import sys\nif not hasattr(sys, 'again'):\n  sys.again = 1\n  1 // 0\n"
                                                       "from . import nn\n")
        done = self.run_python("import sys\ntry:\n  import torch\nexcept ZeroDivisionError: print('_llmprof' in sys.modules)\n"
                               "import torch; print('_llmprof' in sys.modules)")
        self.assertEqual(done.stdout, "False\nTrue\n")

    def test_only_what_is_asked_for(self):
        code = "import sys, torch; print('_llmprof' in sys.modules)"
        self.assertEqual(self.run_python(code, LLMPROF_MODULES="").stdout, "False\n")
        self.assertEqual(self.run_python(code, LLMPROF_MODULES="", LLMPROF_REQUESTS="1").stdout, "False\n")
        (self.folder / "vllm").mkdir()
        (self.folder / "vllm/__init__.py").write_text("__version__ = '0.19.0'\n")
        code = "import sys, vllm; print('_llmprof.engines' in sys.modules, '_llmprof.engines.vllm' in sys.modules)"
        self.assertEqual(self.run_python(code).stdout, "False False\n")
        self.assertEqual(self.run_python(code, LLMPROF_REQUESTS="1").stdout, "True False\n")  # nobody listens


class Engines(unittest.TestCase):
    """Hooks with a tool that writes down what it is told; whole engines: tests/e2e/engines_test.py."""

    class Tool:
        def __init__(self):
            self.told, self.place = [], types.SimpleNamespace(event=types.SimpleNamespace(payload=0, payload_type=0))

        def own_range(self, category, name):
            return self.place, lambda: self.told.append(name)

        def leave(self):
            self.told.append("leave")

        def own_mark(self, category, name):
            event = types.SimpleNamespace(payload=0)
            return event, lambda: self.told.append((name, event.payload & 0xFF, event.payload >> 8 & 0xFFFFFF, event.payload >> 32))

        def mark(self, category, text, payload=0):
            self.told.append(text)

    def engine(self):
        tool = self.Tool()
        with mock.patch.object(llmprof, "_tool", tool):
            engine = engines.Engine("json", ((2, 0), (2, 0)))
        return engine, tool

    def test_ids_of_clients(self):
        for ours, theirs in (("chatcmpl-abc-1a2b3c4d", "abc"), ("cmpl-abc-0-1a2b3c4d", "abc"), ("cmpl-abc-1-1a2b3c4d", "abc-1"),
                             ("1_cmpl-abc-0-1a2b3c4d", "1_abc"), ("7-1a2b3c4d", "7"), ("plain", "plain"), ("", "")):
            self.assertEqual(engines_of_vllm.client_id(ours, True), theirs)
        self.assertEqual(engines_of_vllm.client_id("chatcmpl-11112222-deadbeef", False), "11112222-deadbeef")

    def test_steps_and_their_members(self):
        engine, tool = self.engine()
        engine.owners = ["Some"]
        for prompts, stage in (((1, 1), "prefill"), ((0, 1), "mixed"), ((0, 0), "decode")):
            engine.open_step([("a", 5, 9, prompts[0]), ("b", 1, 30, prompts[1])])
            self.assertEqual((tool.told[0], tool.place.event.payload), (stage, 2))
            engine.padded(8)
            engine.padded(16)  # a draft's
            engine.close_step()
            engine.close_step()
            self.assertEqual([each for each in tool.told[1:] if not str(each).startswith("requests:")],
                             [("a", engines.MEMBER, 5, 9), ("b", engines.MEMBER, 1, 30), ("", engines.PADDED, 8, 0), "leave"])
            tool.told.clear()

    def test_what_fails_is_turned_off_and_never_seen(self):
        engine, tool = self.engine()

        class Owner:
            def works(self, value, *, more):
                if value < 0:
                    raise ValueError("the engine's own")
                return value + more
        engine.wrap(Owner, "works", before=lambda owner, value, more: 1 // value, step=True)
        self.assertEqual(Owner().works(1, more=2), 3)
        engine.open_step([])
        with self.assertRaisesRegex(ValueError, "the engine's own"):
            Owner().works(-1, more=2)
        self.assertEqual(tool.told[-1], "leave")  # its step is closed
        with mock.patch("sys.stderr", io.StringIO()) as said:
            self.assertEqual([Owner().works(0, more=2), Owner().works(0, more=2)], [2, 2])
        self.assertEqual(said.getvalue().count("not recorded any more: ZeroDivisionError"), 1)
        self.assertIn("hooks turned off", tool.told[-1])

    def test_many_requests_keep_no_memory(self):
        engine, tool = self.engine()
        for number in range(20000):
            engine.mark(f"r{number}", engines.OUTPUT, 1)
        self.assertLessEqual(len(engine._here.marks), 8192)


if __name__ == "__main__":
    unittest.main()
