"""What llmprof says of real programs and is not true: tests that fail today, each with its reason. A gap that is closed
makes its test fail until its entry is taken out here and the test holds it."""

GAPS = {
    "wall_time_begins_late": "`Wall time` begins with the first event, not with the process, though that is seen from outside",
    "load_time_is_zero": "the rule load_time says that 0 ns passed before the first step, of a program that first imports "
                         "for seconds",
    "modules_of_no_stage": "with --modules the modules stand under no stage, with 0 calls under decode",
    "modules_not_matched": "with --modules all of decode's time is `not matched to the model`, beside a waterfall that matches it",
    "advice_needs_products": "without any matrix product seen, the report says that --model would tell stages from them",
    "products_seen_that_were_not": "with --model, the report speaks of the matrix products that were seen, where none was",
}
