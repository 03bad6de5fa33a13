"""The package against a tool that writes down what it hears, and the hook that `record --modules` puts into a program."""
import ctypes
import gc
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]
import fake_torch  # noqa: E402
import llmprof  # noqa: E402
from llmprof import _modules, _nvtx  # noqa: E402


class Ears:
    """Stands for a tool: the functions a Tool needs, in Python."""

    def __init__(self):
        self.heard, self.depth = [], {}
        self.domain = 7

    def event(self, domain, category, text, payload=0):
        event = _nvtx._Event(3, ctypes.sizeof(_nvtx._Event), category, payload=payload)
        event.text = (domain, category, text, payload)
        return event

    def lasting_event(self, category, text):
        self.kept = getattr(self, "kept", {})
        event = self.event(self.domain, category, text)
        self.kept[ctypes.addressof(event)] = event
        return ctypes.addressof(event)

    def push(self, domain, address):
        event = self.kept.get(address) if hasattr(self, "kept") else None
        self.heard.append(("push", event.text[2] if event else address, threading.get_ident()))

    def pop(self, domain):
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
        for child in self._children.values():
            value = child(value)
        return value


EXPECTED = [
    "layers.0", "layers.0/layers.0.self_attn", "layers.0/layers.0.self_attn/layers.0.self_attn.q_proj",
    "layers.0/layers.0.mlp", "layers.0/layers.0.mlp/layers.0.mlp.up_proj",
    "layers.1", "layers.1/layers.1.self_attn", "layers.1/layers.1.self_attn/layers.1.self_attn.q_proj",
    "layers.1/layers.1.mlp", "layers.1/layers.1.mlp/layers.1.mlp.up_proj", "lm_head"]


class Names(unittest.TestCase):
    def test_paths_are_those_of_the_checkpoint(self):
        for name, path in (("", ""), ("model", ""), ("model.layers.3.mlp.up_proj", "layers.3.mlp.up_proj"),
                           ("transformer.h.0.attn", "h.0.attn"), ("lm_head", "lm_head"),
                           ("module.model.norm", "norm"), ("_orig_mod.model.layers.0", "layers.0"),
                           ("_fsdp_wrapped_module.model.layers.0._fsdp_wrapped_module.mlp", "layers.0.mlp"),
                           ("model.language_model.layers.1", "language_model.layers.1"), ("encoder.model", "encoder.model")):
            self.assertEqual(_modules.clean_name(name), path, name)


class GlobalHooks(unittest.TestCase):
    def setUp(self):
        self.ears, self.compiling, self.roots = Ears(), False, []
        self.modules = _modules.Modules(self.ears, _nvtx.MODULE, lambda: self.compiling, self.roots.append)
        self.handles = [fake_torch.register_module_forward_pre_hook(self.modules.before),
                        fake_torch.register_module_forward_hook(self.modules.after, always_call=True)]
        self.addCleanup(lambda: [handle.remove() for handle in self.handles])

    def test_every_module_has_its_path(self):
        model = llama()
        model(0)
        self.assertEqual(self.ears.paths(), EXPECTED)
        self.assertEqual(self.roots, [model])
        model(0)
        self.assertEqual(self.ears.paths(), EXPECTED * 2)
        self.assertEqual(self.roots, [model])

    def test_a_part_called_alone_keeps_its_name(self):
        model = llama()
        model(0)
        self.ears.heard.clear()
        model._children["model"]._children["layers"]._children["1"](0)
        self.assertEqual(self.ears.paths(), EXPECTED[5:10])

    def test_the_decoder_alone_has_the_same_names(self):
        llama()._children["model"](0)
        self.assertEqual(self.ears.paths(), EXPECTED[:-1])

    def test_nothing_while_compiling(self):
        self.compiling = True
        llama()(0)
        self.assertEqual(self.ears.heard, [])

    def test_exceptions_close_what_they_leave(self):
        model = llama()
        inner = model._children["model"]._children["layers"]._children["0"]._children["mlp"]._children["up_proj"]
        inner.forward = lambda value: 1 // 0
        with self.assertRaises(ZeroDivisionError):
            model(0)
        self.assertEqual(self.ears.paths(), EXPECTED[:5])
        del inner.forward
        self.ears.heard.clear()
        model(0)
        self.assertEqual(self.ears.paths(), EXPECTED)

    def test_an_interrupt_is_mended_by_the_next_call(self):
        model = llama()
        inner = model._children["model"]._children["layers"]._children["0"]

        def interrupted(value):
            raise KeyboardInterrupt  # PyTorch calls no hook for it
        inner.forward = interrupted
        with self.assertRaises(KeyboardInterrupt):
            model(0)
        del inner.forward
        model(0)
        self.assertEqual(self.ears.paths(), ["layers.0"] + EXPECTED)

    def test_a_hook_before_ours_that_raises(self):
        model = llama()

        def refuse(module, arguments):
            raise ValueError
        handle = fake_torch.global_before.add(refuse)
        fake_torch.global_before.move_to_end(handle.key, last=False)
        with self.assertRaises(ValueError):
            model(0)
        handle.remove()
        self.assertEqual(self.ears.heard, [])
        model(0)
        self.assertEqual(self.ears.paths(), EXPECTED)

    def test_modules_that_come_later(self):
        model = llama(1)
        model(0)
        self.ears.heard.clear()
        model.add("value_head", fake_torch.Module())
        model(0)
        self.assertEqual(self.ears.paths(), EXPECTED[:5] + ["lm_head", "value_head"])

    def test_a_module_that_is_in_no_model(self):
        model, hidden = llama(1), fake_torch.Module()
        model._children["lm_head"].forward = hidden
        for _ in range(100):
            model(0)
        self.assertEqual(self.ears.paths(), (EXPECTED[:5] + ["lm_head"]) * 100)

    def test_models_are_let_go(self):
        for _ in range(20):
            llama(1)(0)
        self.roots.clear()
        gc.collect()
        self.assertEqual(self.modules._names, {})
        self.assertEqual(self.ears.paths(), (EXPECTED[:5] + ["lm_head"]) * 20)

    def test_threads(self):
        model = llama()
        threads = [threading.Thread(target=lambda: [model(0) for _ in range(20)]) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(sorted(self.ears.paths()), sorted(EXPECTED * 80))


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
                              env={**kept, "PYTHONPATH": value, "PYTHONDONTWRITEBYTECODE": "1", **environment})
        self.assertEqual(done.returncode, 0, done.stderr)
        return done

    def test_torch_is_imported_as_always(self):
        done = self.run_python("import sys, torch; print(torch.loaded, torch.__spec__.loader.__class__.__name__, "
                               "'_llmprof' in sys.modules, 'exec_module' in vars(torch.__loader__), "
                               "[f for f in sys.meta_path if 'Finder' in str(f) and 'sitecustomize' in str(f)])")
        self.assertEqual(done.stdout, "True SourceFileLoader True False []\n")
        self.assertEqual(done.stderr, "")

    def test_nothing_happens_without_torch(self):
        done = self.run_python("import sys; print(sorted(m for m in sys.modules if m in ('ctypes', 'torch', '_llmprof')), "
                               "any(p.endswith('/hook') for p in sys.path))")
        self.assertEqual(done.stdout, "[] False\n")

    def test_children_inherit_it(self):
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


if __name__ == "__main__":
    unittest.main()
