-- title: Time to the first token
-- unit: ns
-- Begin to end of the first prefill step; its sampling is inside.
SELECT end_ns - begin_ns AS ttft_ns FROM step WHERE stage = 'prefill' ORDER BY begin_ns LIMIT 1;
