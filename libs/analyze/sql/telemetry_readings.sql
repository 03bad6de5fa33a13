-- title: Readings of devices
-- unit: thousandths of the metric's unit
-- Whole numbers, as native passes read them; a reading that is no number is left out.
SELECT device_id, metric, ts_ns, TRY_CAST(round(value * 1000) AS BIGINT) AS thousandths
FROM telemetry
WHERE process_id IS NULL AND TRY_CAST(round(value * 1000) AS BIGINT) IS NOT NULL
  AND metric IN ('power_w', 'energy_j', 'sm_clock_mhz', 'memory_clock_mhz', 'temperature_c', 'clock_limits',
                 'sm_active', 'sm_occupancy', 'tensor_active', 'dram_active')
ORDER BY ts_ns;
