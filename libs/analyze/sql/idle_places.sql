-- title: Idle time of the device, by what the host was in
-- unit: ns
-- gap_ns: inside steps; between_ns: after them, up to the next one. Nothing executes then, and nothing is queued.
SELECT stage, warm_up, place, coalesce(sum(time_ns) FILTER (owner = 'gap'), 0)::BIGINT AS gap_ns,
  coalesce(sum(time_ns) FILTER (owner = 'between'), 0)::BIGINT AS between_ns
FROM idle_place
GROUP BY ALL
ORDER BY stage, warm_up, gap_ns + between_ns DESC, place;
