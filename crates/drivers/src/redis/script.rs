//! The script that writes several rows of hashes atomically.
//!
//! Before version 8 Redis has no command that stores fields of a hash only if none, or only if all, of them exist, and
//! no command that stores them with an expiry. Applications use a script for this, which is one atomic request. Once
//! the server has cached the script, it is called by its digest.

/// The script's source. `KEYS`: the hashes. `ARGV`: `NX`, `XX` or empty; seconds until expiry, or 0; then for each hash
/// the number of rows, and the name and value of each. It returns the number of rows, or -1 if it changed nothing.
pub(super) const SOURCE: &str = r"local mode, ttl, rows = ARGV[1], tonumber(ARGV[2]), 0
if mode ~= '' then
  local at = 3
  for _, key in ipairs(KEYS) do
    local last = at + 2 * ARGV[at]
    if mode == 'XX' or redis.call('EXISTS', key) == 1 then
      for name = at + 1, last, 2 do
        if (redis.call('HEXISTS', key, ARGV[name]) == 1) ~= (mode == 'XX') then return -1 end
      end
    end
    at = last + 1
  end
end
local at = 3
for _, key in ipairs(KEYS) do
  local last = at + 2 * ARGV[at]
  for first = at + 1, last, 1000 do
    redis.call('HSET', key, unpack(ARGV, first, math.min(first + 999, last)))
  end
  if ttl > 0 then redis.call('EXPIRE', key, ttl) end
  rows = rows + ARGV[at]
  at = last + 1
end
return rows
";

/// The script's SHA-1 digest, as `SCRIPT LOAD` returns it.
pub(super) const DIGEST: &[u8] = b"83617eae7ad5a9686318f66033dc5459fc6f3d93";
