#pragma once
// Programs refer weakly to functions of BLAS to learn whether there is one. Our hooks have the names, so the loader
// would tell them yes. Where no other library of the process has such a name, the reference is set back to what it
// would be without us: nothing.

namespace llmprof::collect::blas {

// Looks at objects that were loaded since it was last called: cheap if there are none. Called as we are loaded, before
// constructors of the program, and when a program asks a library that it has opened for a function.
void clear_weak_references();

// An object was unloaded: another one may be where it was.
void forget_objects();

}  // namespace llmprof::collect::blas
