-- title: Files of other tools that the run was made from
-- unit: bytes
SELECT file, format, tool, bytes, clock FROM source ORDER BY id;
