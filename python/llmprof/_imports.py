"""Tells when a module has been imported, without importing it, and leaves nothing behind then. Needs nothing else of this
package: python/hook loads it by itself."""
import sys
from _thread import get_ident

_wanted = {}        # name of a module -> what is called with it
_searching = set()  # names, with the threads that look for them


class _Finder:
    """In front of the others, whose work it leaves to them: it only follows what they find."""
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        search = name, get_ident()
        if name not in _wanted or search in _searching:
            return None
        _searching.add(search)
        try:
            found = (finder.find_spec(name, path, target) for finder in list(sys.meta_path)
                     if finder is not cls and hasattr(finder, "find_spec"))
            spec = next((spec for spec in found if spec is not None), None)
        finally:
            _searching.discard(search)
        loader = getattr(spec, "loader", None)
        execute = getattr(loader, "exec_module", None)
        if execute is not None:
            cls._follow(name, loader, execute)
        return spec

    @classmethod
    def _follow(cls, name, loader, execute):
        def exec_module(module):
            del loader.exec_module
            execute(module)
            functions = _wanted.pop(name, ())
            if not _wanted and cls in sys.meta_path:
                sys.meta_path.remove(cls)
            for function in functions:
                function(module)
        try:
            loader.exec_module = exec_module
        except AttributeError:  # a loader that cannot be followed
            pass


def when_imported(name, function):
    """Calls function(module) when the module has been imported: at once, if it is there. It must not raise."""
    module = sys.modules.get(name)
    if module is not None and not getattr(getattr(module, "__spec__", None), "_initializing", False):
        function(module)
        return
    _wanted.setdefault(name, []).append(function)
    if _Finder not in sys.meta_path:
        sys.meta_path.insert(0, _Finder)
