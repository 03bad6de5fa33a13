-- title: Devices that were read while the program ran
-- unit: MHz, ns
-- CPU time of the reader stands with the first device.
SELECT d.id, d.name, d.clock_mhz, t.readings, t.begin_ns, t.end_ns, t.sampler_cpu_s, t.power_limit_w
FROM device AS d JOIN (
  SELECT device_id, count(*) AS readings, min(ts_ns) AS begin_ns, max(ts_ns) AS end_ns,
    max(value) FILTER (metric = 'sampler_cpu_s') AS sampler_cpu_s,
    arg_max(value, ts_ns) FILTER (metric = 'power_limit_w') AS power_limit_w
  FROM telemetry GROUP BY device_id) AS t ON t.device_id = d.id
ORDER BY d.id;
