"""Set in front of PYTHONPATH by `llmprof record --modules` and `--requests`: when the program imports torch, its modules
become ranges; when it imports an engine that is known, its steps name their members. Then makes way for the sitecustomize
of the user or the system, if there is one. Must never be in anybody's way."""
import os
import sys


def _load(name, path, folders=None):
    """Under a name of its own: the program may have an llmprof too."""
    import importlib.util
    spec = importlib.util.spec_from_file_location(name, path, submodule_search_locations=folders)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def _watch(package):
    """Starts our parts when what they are for has been imported; nothing is loaded before."""
    imports = _load("_llmprof_imports", package + "/_imports.py")

    def when_imported(name, what, start):
        def loaded(module):
            try:
                if "_llmprof" not in sys.modules:
                    _load("_llmprof", package + "/__init__.py", [package])
                start(module)
            except Exception as error:  # noqa: BLE001
                sys.stderr.write(f"llmprof: {what} are not recorded: {type(error).__name__}: {error}\n")
        imports.when_imported(name, loaded)

    def modules(torch):
        sys.modules["_llmprof._modules"].install(torch)

    def requests(engine):
        import importlib
        importlib.import_module("_llmprof.engines").arm(engine.__name__)

    if os.environ.get("LLMPROF_MODULES"):
        when_imported("torch", "modules", modules)
    if os.environ.get("LLMPROF_REQUESTS", "0") != "0":
        for engine in ("transformers", "vllm", "sglang"):
            when_imported(engine, f"requests of {engine}", requests)


def _make_way(folder):
    """The sitecustomize that would have been imported without us takes our place."""
    import importlib.util
    from importlib.machinery import PathFinder
    sys.path[:] = [entry for entry in sys.path if entry != folder]
    ours = sys.modules.pop("sitecustomize", None)
    spec = PathFinder.find_spec("sitecustomize", sys.path)
    if spec is None or spec.loader is None:
        sys.modules["sitecustomize"] = ours
        return
    module = importlib.util.module_from_spec(spec)
    sys.modules["sitecustomize"] = module
    spec.loader.exec_module(module)


_folder = __file__.rpartition("/")[0]
try:
    _watch(_folder.rpartition("/")[0] + "/llmprof")
finally:
    _make_way(_folder)
