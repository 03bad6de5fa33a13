// Only there so that its target has something to compile: what counts is the header (llmprof_precompile).
