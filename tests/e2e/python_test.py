"""record --modules on a program that imports a torch (a fake one: hooks as PyTorch 2 has them), and the package."""
import json
import pathlib
import sys
import unittest

from harness import BIN, Case

PYTHON = pathlib.Path(__file__).resolve().parents[2] / "python"
PROGRAM = """
import os, subprocess, sys, torch
from torch.nn.modules.module import Module
class Layers(Module):
    def __call__(self, value):
        for child in self._modules.values(): value = child(value)
        return value
layers = Layers(**{str(i): Module(mlp=Module(up_proj=Module())) for i in range(2)})
model = Module(model=Module(layers=layers), lm_head=Module())
class Config:
    model_type = "llama"
    def to_dict(self): return {"model_type": "llama", "hidden_size": 64}
model.config = Config()
class Parameter:
    dtype = "torch.bfloat16"
    def numel(self): return 7
model.parameters = lambda: [Parameter()]
assert sys.modules["_llmprof"]._tool._quick, "ranges go through ctypes"
print(model(0), os.environ["PYTHONPATH"].endswith(":" + sys.argv[1]), sys.path[1] == sys.argv[1], sys.from_user)
if len(sys.argv) == 2:
    subprocess.run([sys.executable, __file__, sys.argv[1], "child"], check=True)
"""
ANNOTATED = """
import sys
sys.path.insert(0, sys.argv[1])
import llmprof
assert llmprof.listening()
with llmprof.stage("decode"):
    for context in (513, 514):
        with llmprof.step("decode", batch=2, tokens=1, context=context), llmprof.module("lm_head"):
            pass
@llmprof.range("größe")
def sized(): return 5
assert sized() == 5 and sized.__name__ == "sized"
async def later(): pass
for wrong, error in ((lambda: llmprof.range("x")(later), TypeError), (lambda: llmprof.range("x", kind="y"), ValueError)):
    try: wrong()
    except error: pass
    else: raise SystemExit("taken")
for quick in (llmprof._tool._quick, None):  # as an interpreter or a tool has them that knows no other way than ctypes
    llmprof._tool._quick = quick
    event, make = llmprof._tool.own_mark(8, "r-1")
    for tokens in (3, 4):
        event.payload = 5 | tokens << 8
        make()
"""

LAUNCHES = """
import ctypes, os
cuda = ctypes.CDLL(os.environ["FAKE_CUDA"])  # releases the GIL for each call, as torch does
context, module, function, stream = (ctypes.c_void_p() for _ in range(4))
assert cuda.cuInit(0) == 0 and cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
cuda.cuCtxSetCurrent(context)
cuda.cuModuleLoadData(ctypes.byref(module), None)
cuda.cuModuleGetFunction(ctypes.byref(function), module, b"gemm:1500")
cuda.cuStreamCreate(ctypes.byref(stream), 1)
def launch(): cuda.cuLaunchKernel(function, 1, 1, 1, 128, 1, 1, 0, stream, None, None)
class Layer:
    def forward(self):
        launch()
        launch()
for _ in range(10): Layer().forward()
cuda.cuStreamSynchronize(stream)
"""
FAKES = BIN.parent / "tests/fakes"


class PythonTest(Case):
    def fake_torch(self):
        modules = self.folder / "packages/torch/nn/modules"
        modules.mkdir(parents=True)
        (self.folder / "packages/sitecustomize.py").write_text("import sys\nsys.from_user = True\n")
        (self.folder / "packages/torch/__init__.py").write_text(
            "from . import nn\nclass version: cuda = '13.0'\n"
            "class cuda: get_allocator_backend = staticmethod(lambda: 'native')\n")
        (self.folder / "packages/torch/nn/__init__.py").write_text("from . import modules\n")
        (modules / "__init__.py").write_text("from . import module\n")
        (modules / "module.py").write_text((PYTHON / "tests/fake_torch.py").read_text())
        return str(self.folder / "packages")

    def test_modules_of_a_program_that_was_not_changed(self):
        packages = self.fake_torch()
        self.environment["PYTHONPATH"] = packages
        program = self.write("program.py", PROGRAM)
        done = self.record("run", sys.executable, program, packages, options=("--no-peaks", "--no-host", "--modules"))
        # 2 layers of 3 modules, the decoder, the head, the model: 9 additions.
        self.assertEqual(done.stdout, "9 True True True\n" * 2)
        rows = self.query("run", "select process_id, name, category, domain, depth from range order by process_id, begin_ns")
        names = ["layers.0", "layers.0.mlp", "layers.0.mlp.up_proj", "layers.1", "layers.1.mlp", "layers.1.mlp.up_proj",
                 "lm_head"]
        ranges = [row for row in rows if row["category"] == "module"]
        self.assertEqual([row["name"] for row in ranges], names * 2)
        self.assertEqual({row["domain"] for row in ranges}, {"llmprof"})
        passes = [(row["name"], row["depth"]) for row in rows if row["category"] == "pass"]
        self.assertEqual(passes, [("steps", 0)] * 2)  # two calls of a model, of which nothing says what they are
        self.assertEqual(self.query("run", "select stage, source, count(*) as steps from step group by all"),
                         [{"stage": "steps", "source": "declared", "steps": 2}])
        self.assertEqual(len({row["process_id"] for row in ranges}), 2)
        declared = [json.loads(row["name"]) for row in rows if row["category"] == "model"]
        self.assertEqual(declared, [{"model_type": "llama", "hidden_size": 64, "dtype": "bfloat16"}] * 2)  # as its weights are
        notes = self.query("run", "select subject, text from note where subject = 'allocator'")
        self.assertEqual(len(notes), 2)
        self.assertIn("caching allocator (native)", notes[0]["text"])

    def test_python_that_leaves_its_environment_alone(self):
        done = self.record("run", sys.executable, "-I", "-c", "print(1)", options=("--no-peaks", "--no-host", "--modules"))
        self.assertIn("modules are not recorded", done.stderr)
        self.assertEqual(done.stdout, "1\n")

    def test_the_package(self):
        program = self.write("program.py", ANNOTATED)
        self.record("run", sys.executable, program, str(PYTHON), options=("--no-peaks", "--no-host"))
        rows = self.query("run", "select name, category, domain, payload from range order by begin_ns")
        self.assertEqual([(row["name"], row["category"]) for row in rows if row["domain"] == "llmprof"],
                         [("decode", "stage")] + [("decode", "step"), ("lm_head", "module")] * 2)
        steps = [int(row["payload"]) for row in rows if row["category"] == "step"]
        self.assertEqual(steps, [2 | 1 << 16 | context << 40 for context in (513, 514)])
        self.assertIn("größe", [row["name"] for row in rows if row["domain"] != "llmprof"])
        marks = self.query("run", "select event, tokens from request_event order by ts_ns")
        self.assertEqual([(row["event"], row["tokens"]) for row in marks], [("output", 3), ("output", 4)] * 2)

    def test_lines_of_launches(self):
        self.environment.update(FAKE_CUDA=str(FAKES / "libcuda.so.1"), LLMPROF_CUPTI=str(FAKES / "libcupti.so.13"))
        program = self.write("program.py", LAUNCHES)
        self.record("run", sys.executable, program, options=("--no-peaks", "--no-host", "--stacks", "python"))
        rows = self.query("run", "select s.depth, f.kind, f.function, f.file, f.line, count(*) as kernels from kernel k "
                                 "join stack s on s.stack_id = k.stack_id join frame f on f.id = s.frame_id "
                                 "group by all order by s.depth, f.line")
        lines = LAUNCHES.splitlines()
        place = {text.strip(): number for number, text in enumerate(lines, 1)}
        launch = next(number for text, number in place.items() if text.startswith("def launch"))
        loop = next(number for text, number in place.items() if text.startswith("for _"))
        first = place["launch()"] - 1
        self.assertEqual([tuple(row[key] for key in ("depth", "kind", "function", "file", "line", "kernels")) for row in rows],
                         [(0, "python", "launch", program, launch, 20), (1, "python", "Layer.forward", program, first, 10),
                          (1, "python", "Layer.forward", program, first + 1, 10), (2, "python", "<module>", program, loop, 20)])


if __name__ == "__main__":
    unittest.main()
