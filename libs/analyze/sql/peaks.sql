-- title: Peak rates of the devices
-- unit: per row
-- Measured before specified, when a run holds both.
SELECT device_id, quantity, type, value, unit, source, method
FROM peak
ORDER BY device_id, quantity, type, CASE source WHEN 'measured' THEN 0 ELSE 1 END;
