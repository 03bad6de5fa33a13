-- title: Device memory in use, as the driver says
-- unit: ns, bytes
-- Of the device as a whole (process_id NULL) and of processes.
SELECT device_id, process_id, ts_ns, TRY_CAST(value AS BIGINT) AS bytes
FROM telemetry
WHERE metric IN ('memory_used_bytes', 'process_memory_bytes') AND TRY_CAST(value AS BIGINT) IS NOT NULL
ORDER BY ts_ns;
