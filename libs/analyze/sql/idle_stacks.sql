-- title: Frames of the stacks sampled while the device idles, innermost first
-- unit: none
SELECT k.stack_id, f.kind, f.function, f.file
FROM stack AS k
  JOIN frame AS f ON f.id = k.frame_id
WHERE k.stack_id IN (
  SELECT s.stack_id FROM sample AS s JOIN sample_place AS p ON p.sample_id = s.id WHERE p.idle_in_step IS NOT NULL)
ORDER BY k.stack_id, k.depth;
