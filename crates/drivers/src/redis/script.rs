//! The one script: several rows of hashes, all or none.
//!
//! Redis (before version 8) has no command that stores fields of a hash only if none, or only if all, of them are
//! there, and none that stores them and lets the hash expire; a script is what an application uses, and is one request
//! that nothing comes in between of. It is sent by its digest once the server has seen it.

/// `KEYS`: the hashes. `ARGV`: `NX`, `XX` or nothing; seconds to live, or 0; then for each hash how many rows, and the
/// name and value of each. It gives the number of rows, or -1 where it has done nothing.
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

/// The script's digest, as `SCRIPT LOAD` gives it.
pub(super) const DIGEST: &[u8] = b"83617eae7ad5a9686318f66033dc5459fc6f3d93";
