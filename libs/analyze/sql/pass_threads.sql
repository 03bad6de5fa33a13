-- title: The process of each thread
-- unit: ids
-- For the attribution passes: kernels of worker threads look for the step of their process.
SELECT id, process_id FROM thread;
