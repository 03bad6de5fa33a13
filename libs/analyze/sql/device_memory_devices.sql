-- title: Devices whose memory was allocated or read
-- unit: bytes
-- caching_allocator: kernels of PyTorch, or its functions on the stacks of allocations, were seen, and what was
-- recorded are the calls of CUDA, not PyTorch's own allocations.
SELECT d.id, d.name, d.memory_bytes,
  EXISTS (SELECT 1 FROM allocation WHERE kind = 'device') AND (
  EXISTS (SELECT 1 FROM kernel WHERE contains(name, 'at::native') OR contains(name, 'at6native'))
    OR EXISTS (SELECT 1 FROM allocation AS a JOIN stack AS s ON s.stack_id = a.stack_id JOIN frame AS f ON f.id = s.frame_id
               WHERE contains(f.file, '/torch/') OR contains(f.file, 'libc10_cuda'))) AS caching_allocator
FROM device AS d
WHERE d.id IN (SELECT device_id FROM allocation WHERE kind IS DISTINCT FROM 'pinned')
  OR d.id IN (SELECT device_id FROM telemetry WHERE metric = 'memory_used_bytes')
ORDER BY d.id;
