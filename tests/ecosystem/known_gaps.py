"""What llmprof says of real programs and is not true: tests that fail today, each with its reason. A gap that is closed
makes its test fail until its entry is taken out here and the test holds it."""

GAPS = {}
