"""What llmprof says of real programs and is not true: tests that fail today, each with its reason. A gap that is closed
makes its test fail until its entry is taken out here and the test holds it."""

GAPS = {
    "wall_time_begins_late": "`Wall time` begins with the first event, not with the process, though that is seen from outside",
    "load_time_is_zero": "the rule load_time says that 0 ns passed before the first step, of a program that first imports "
                         "for seconds",
}
