#pragma once
// The loader's list of objects, walked so that a fork at the same time does no harm. A forked child inherits the
// loader's lock as it is: were another thread of the parent walking just then, nobody would ever release it in the
// child, which would hang at its first walk, its own or ours. So a fork waits until our walks are over, and they wait
// for it; neither waits long, whatever happens.

#include <link.h>

#include <cstddef>

namespace llmprof::collect {

// dl_iterate_phdr. Walks inside `visit` call that itself: they are part of this one.
void walk_objects(int (*visit)(dl_phdr_info* info, std::size_t size, void* context), void* context);

}  // namespace llmprof::collect
