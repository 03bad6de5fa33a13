"""Set in front of PYTHONPATH by `llmprof record --modules`: when the program imports torch, its modules become ranges.
Then makes way for the sitecustomize of the user or the system, if there is one. Must never be in anybody's way."""
import sys


def _watch_for_torch(package):
    """Calls the package's install() when torch has been imported, without importing it, and without staying around."""
    def loaded(torch):
        try:
            import importlib.util
            spec = importlib.util.spec_from_file_location("_llmprof", package + "/__init__.py",
                                                          submodule_search_locations=[package])
            module = importlib.util.module_from_spec(spec)
            sys.modules["_llmprof"] = module  # a name of its own: the program may have an llmprof too
            spec.loader.exec_module(module)
            sys.modules["_llmprof._modules"].install(torch)
        except Exception as error:  # noqa: BLE001
            sys.stderr.write(f"llmprof: modules are not recorded: {type(error).__name__}: {error}\n")

    class Finder:
        @staticmethod
        def find_spec(name, path=None, target=None):
            if name != "torch":
                return None
            sys.meta_path.remove(Finder)
            found = (finder.find_spec(name, path, target) for finder in list(sys.meta_path)
                     if hasattr(finder, "find_spec"))
            spec = next((spec for spec in found if spec is not None), None)
            loader = getattr(spec, "loader", None)
            execute = getattr(loader, "exec_module", None)
            if execute is None:
                return None

            def exec_module(module):
                del loader.exec_module
                execute(module)
                loaded(module)
            loader.exec_module = exec_module
            return spec
    sys.meta_path.insert(0, Finder)


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
    _watch_for_torch(_folder.rpartition("/")[0] + "/llmprof")
finally:
    _make_way(_folder)
