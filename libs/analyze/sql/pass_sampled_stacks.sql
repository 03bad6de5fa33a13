-- title: Stacks for the pass that finds training loops by functions
-- unit: frames
-- Frames of the stacks that name a way through a model, by stack, the outermost frame first. None where no function of the
-- run says backward: there is nothing to find then.
WITH says AS (
  SELECT id, regexp_matches(function, '(?i)backward|bwd|backprop') AS back
  FROM frame
  WHERE regexp_matches(function, '(?i)forward|fwd|backward|bwd|backprop|update|optim|adam|sgd|lion|valid|eval|generat')),
wanted AS (
  SELECT DISTINCT stack_id FROM stack
  WHERE frame_id IN (SELECT id FROM says) AND EXISTS (SELECT 1 FROM says WHERE back))
SELECT s.stack_id, s.depth, f.function
FROM stack AS s JOIN wanted USING (stack_id) JOIN frame AS f ON f.id = s.frame_id
ORDER BY s.stack_id, s.depth DESC;
