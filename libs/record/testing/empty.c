// A shared library that does nothing: stands in for the injected ones.
int llmprof_record_test_library(void);
int llmprof_record_test_library(void) { return 0; }
