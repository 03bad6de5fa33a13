-- title: Totals as another tool added them up
-- unit: ns, bytes, FLOP
SELECT kind, name, shapes, calls, self_cpu_ns AS self_host_ns, cpu_ns AS host_ns, self_device_ns, device_ns, cpu_bytes AS host_bytes,
  device_bytes, flops, moved_bytes
FROM summary
ORDER BY coalesce(self_device_ns, 0) DESC, coalesce(self_cpu_ns, cpu_ns, 0) DESC, name, id;
