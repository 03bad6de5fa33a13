#pragma once
// Frames that only pass a call on: the interpreter's own calls, decorators, dispatchers, how threads and programs
// begin. A flame graph leaves them out unless asked. This table is the only place that names them.

#include <array>
#include <string_view>

#include "exporters/stacks.h"

namespace llmprof::pictures {

struct WrapperPattern {
  std::string_view function;  // without its class; '*' at the end: any name that begins so
  std::string_view file;      // a part of the path of its file or library; "" any
};

inline constexpr std::array kPythonWrappers = std::to_array<WrapperPattern>({
    // Python: imports, modules run as programs, threads, processes, event loops
    {"*", "<frozen importlib"},
    {"*", "importlib/__init__.py"},
    {"*", "<frozen runpy>"},
    {"*", "/runpy.py"},
    {"_bootstrap", "threading.py"},
    {"_bootstrap_inner", "threading.py"},
    {"run", "threading.py"},
    {"_worker", "concurrent/futures/thread.py"},
    {"run", "concurrent/futures/thread.py"},
    {"*", "multiprocessing/process.py"},
    {"*", "multiprocessing/spawn.py"},
    {"*", "multiprocessing/popen_"},
    {"*", "multiprocessing/context.py"},
    {"run_forever", "asyncio/"},
    {"run_until_complete", "asyncio/"},
    {"_run_once", "asyncio/"},
    {"_run", "asyncio/"},
    {"run", "asyncio/runners.py"},
    {"inner", "contextlib.py"},
    {"wrapper", "functools.py"},
    // PyTorch
    {"_call_impl", "torch/nn/modules/module.py"},
    {"_wrapped_call_impl", "torch/nn/modules/module.py"},
    {"inner", "torch/nn/modules/module.py"},
    {"decorate_context", "torch/utils/_contextlib.py"},
    {"decorate_autocast", "torch/amp/"},
    {"decorate_fwd", "torch/"},
    {"__call__", "torch/_ops.py"},
    {"_fn", "torch/_dynamo/"},
    {"inner", "torch/_compile.py"},
    {"wrapper", "torch/_dynamo/"},
    {"wrapper", "torch/optim/optimizer.py"},
    {"profile_hook_step", "torch/optim/optimizer.py"},
    {"_use_grad", "torch/optim/optimizer.py"},
    {"maybe_fallback", "torch/optim/optimizer.py"},
    {"apply", "torch/autograd/function.py"},
    {"handle_torch_function", "torch/overrides.py"},
    // Hugging Face
    {"wrapper", "transformers/utils/"},
    {"wrapped_func", "transformers/utils/"},
    {"wrapper", "transformers/integrations/"},
    {"new_forward", "accelerate/hooks.py"},
    {"wrapper", "transformers/modeling_"},
    // JAX
    {"reraise_with_filtered_traceback", "jax/"},
    {"wrapper", "jax/_src/"},
    {"wrapped", "jax/_src/"},
    {"cache_miss", "jax/_src/"},
    // llmprof's own
    {"*", "llmprof/python/"},
    {"exec_module", "sitecustomize.py"},
});

inline constexpr std::array kNativeWrappers = std::to_array<WrapperPattern>({
    // how programs and threads begin
    {"_start", ""},
    {"__libc_start_*", ""},
    {"start_thread", ""},
    {"clone", ""},
    {"clone3", ""},
    {"__clone*", ""},
    {"std::thread::_State_impl*", ""},
    {"std::_Function_handler*", ""},
    {"execute_native_thread_routine", ""},
    // CPython
    {"PyEval_*", ""},
    {"_PyEval_*", ""},
    {"PyObject_Call*", ""},
    {"_PyObject_Call*", ""},
    {"_PyObject_MakeTpCall", ""},
    {"_PyObject_FastCall*", ""},
    {"PyObject_Vectorcall*", ""},
    {"_PyFunction_Vectorcall", ""},
    {"PyVectorcall_*", ""},
    {"_PyVectorcall*", ""},
    {"PyImport_*", ""},
    {"PyModule_ExecDef", ""},
    {"PyObject_GetAttr*", ""},
    {"_PyObject_LookupAttr*", ""},
    {"_PyObject_GenericGetAttr*", ""},
    {"Py_BytesMain", ""},
    {"Py_RunMain", ""},
    {"pymain_*", ""},
    {"PyRun_*", ""},
    {"_PyRun_*", ""},
    {"method_vectorcall*", ""},
    {"cfunction_*", ""},
    {"slot_tp_*", ""},
    {"vectorcall_*", ""},
    {"pybind11::cpp_function::*", ""},
    {"nanobind::detail::nb_func_vectorcall*", ""},
    {"_dl_catch_*", ""},
    // PyTorch's dispatcher
    {"c10::Dispatcher::*", ""},
    {"c10::impl::wrap_kernel_functor*", ""},
    {"c10::impl::make_boxed_from_unboxed*", ""},
    {"c10::impl::BoxedKernelWrapper*", ""},
    {"at::_ops::*", ""},
    {"at::(anonymous namespace)::wrapper_*", ""},
    {"torch::autograd::TypeError_to_NotImplemented_*", ""},
    // XLA
    {"jax::WeakrefLRUCache*", ""},
    {"llvm::function_ref*", ""},
});

// Whether the frame only passes a call on. `innermost`: it calls nothing, so that its time is its own.
bool is_wrapper(const exporters::Frame& frame, bool innermost);

}  // namespace llmprof::pictures
