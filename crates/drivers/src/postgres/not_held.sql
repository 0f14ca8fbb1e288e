-- What a read-only session of PostgreSQL does not hold back, one row for each that the session's statements may reach: code that works
-- outside of its transaction. The manual: "SET TRANSACTION" (READ ONLY: "This is a high-level notion of read-only that does not prevent
-- all writes to disk"), "Untrusted" languages ("CREATE LANGUAGE"), "C-Language Functions", postgres_fdw, file_fdw (program), "COPY" (PROGRAM),
-- "System Administration Functions". A role counts whose rights a statement may have: the session's own, one that it may become
-- (SET ROLE), one that owns a function with SECURITY DEFINER that these may execute.
WITH RECURSIVE role AS (
  SELECT oid FROM pg_catalog.pg_roles WHERE pg_catalog.pg_has_role(session_user, oid, 'MEMBER')
  UNION
  SELECT p.proowner FROM role, pg_catalog.pg_proc AS p
  WHERE p.prosecdef AND p.oid >= 16384 AND pg_catalog.has_function_privilege(role.oid, p.oid, 'EXECUTE')
),
file_role AS (
  SELECT role.oid FROM role JOIN pg_catalog.pg_roles AS own ON own.oid = role.oid
  WHERE own.rolsuper OR EXISTS (SELECT FROM pg_catalog.pg_roles AS power
                                WHERE power.rolname IN ('pg_execute_server_program', 'pg_write_server_files')
                                  AND pg_catalog.pg_has_role(own.oid, power.oid, 'MEMBER'))
),
-- Functions with effects that no read-only transaction stops: other sessions, files, the server, its statistics, its replication.
outside AS (
  SELECT oid, proname, prosrc FROM pg_catalog.pg_proc WHERE proname ~ '^(pg_stat_(statements|kcache)_reset|pg_buffercache_evict|autoprewarm_)' OR oid < 16384 AND (
    proname IN ('lo_export', 'pg_notify', 'pg_log_backend_memory_contexts', 'pg_terminate_backend', 'pg_cancel_backend', 'pg_reload_conf', 'pg_rotate_logfile', 'pg_switch_wal',
      'pg_create_restore_point', 'pg_promote', 'pg_wal_replay_pause', 'pg_wal_replay_resume', 'pg_backup_start', 'pg_backup_stop',
      'pg_start_backup', 'pg_stop_backup', 'pg_import_system_collations', 'pg_logical_emit_message', 'pg_log_standby_snapshot', 'pg_sync_replication_slots',
      'gin_clean_pending_list')
    OR proname ~ '^(pg_stat_reset|pg_(create|copy|drop)_.*replication_slot|pg_replication_(slot_advance|origin_)|pg_logical_slot_get|brin_.*summarize|pg_(restore|clear)_.*_stats)')
),
named AS (
  SELECT '\m(' || pg_catalog.string_agg(DISTINCT proname, '|') || ')\M' AS in_text,
    ':(funcid|opfuncid|aggfnoid) (' || pg_catalog.string_agg(oid::text, '|') || ')\M' AS in_tree
  FROM outside
),
code AS (
  SELECT p.*, p.oid::regprocedure::text AS name, l.lanname, l.lanpltrusted OR l.lanname = 'internal' AS is_trusted,
    pg_catalog.to_jsonb(p) ->> 'prosqlbody' AS tree,
    (SELECT e.extname FROM pg_catalog.pg_depend AS d JOIN pg_catalog.pg_extension AS e ON e.oid = d.refobjid
     WHERE d.classid = 'pg_catalog.pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'e'
       AND d.refclassid = 'pg_catalog.pg_extension'::regclass) AS extension
  FROM pg_catalog.pg_proc AS p JOIN pg_catalog.pg_language AS l ON l.oid = p.prolang
  -- Triggers need a write; the others are called by the server.
  WHERE p.oid >= 16384 AND p.prorettype NOT IN (
    SELECT oid FROM pg_catalog.pg_type
    WHERE typname IN ('trigger', 'event_trigger', 'fdw_handler', 'language_handler', 'index_am_handler', 'table_am_handler', 'tsm_handler'))
)
SELECT 'function ' || name || CASE WHEN extension IS NULL THEN '' ELSE ' of extension ' || extension END
  || ', which is in language ' || lanname AS what
FROM code
WHERE NOT is_trusted AND EXISTS (SELECT FROM role WHERE pg_catalog.has_function_privilege(role.oid, code.oid, 'EXECUTE'))
  -- Extensions whose functions in C compute or tell something, from the manual ("Additional Supplied Modules") and beyond it. Of
  -- languages and foreign data, their functions and tables count.
  AND NOT (lanname = 'c' AND coalesce(extension, '') IN ('amcheck', 'bloom', 'btree_gin', 'btree_gist', 'citext', 'cube',
    'dict_int', 'dict_xsyn', 'earthdistance', 'file_fdw', 'fuzzystrmatch', 'hstore', 'intagg', 'intarray', 'isn', 'jsonb_plperl', 'jsonb_plpython3u',
    'lo', 'ltree', 'hstore_plperl', 'hstore_plpython3u', 'ltree_plpython3u', 'pageinspect', 'pg_freespacemap', 'pg_prewarm', 'pg_stat_kcache', 'pg_trgm',
    'pg_walinspect', 'pgcrypto', 'pgrowlocks', 'pgstattuple', 'plperl', 'plperlu', 'plpgsql', 'plpython3u', 'pltcl', 'pltclu', 'postgis', 'postgis_raster',
    'postgis_topology', 'postgres_fdw', 'rum', 'seg', 'sslinfo', 'tablefunc', 'tsm_system_rows', 'tsm_system_time', 'unaccent', 'uuid-ossp', 'vector',
    'hll', 'pg_hint_plan', 'plv8', 'pgrouting', 'xml2', 'old_snapshot', 'pg_stat_statements', 'pg_buffercache'))
UNION ALL
SELECT 'foreign table ' || c.oid::regclass::text || ', which another server or a program answers'
FROM pg_catalog.pg_class AS c
WHERE c.relkind = 'f' AND (
  EXISTS (SELECT FROM role WHERE pg_catalog.has_table_privilege(role.oid, c.oid, 'SELECT'))
  -- By its parent, or by a view of one who may.
  OR EXISTS (SELECT FROM pg_catalog.pg_inherits WHERE inhrelid = c.oid)
  OR EXISTS (SELECT FROM role, pg_catalog.pg_class AS v
             WHERE v.relkind = 'v' AND pg_catalog.has_table_privilege(role.oid, v.oid, 'SELECT')
               AND pg_catalog.has_table_privilege(v.relowner, c.oid, 'SELECT') AND v.oid >= 16384))
UNION ALL
SELECT 'function ' || name || ', whose body names what works outside of its transaction'
FROM code, named
WHERE lanname NOT IN ('c', 'internal') AND (prosrc ~* named.in_text OR tree ~ named.in_tree
    OR prosrc ~* '(^|;|\m(begin|then|else|loop)\M)\s*notify\s+["[:alpha:]_]')
  -- One of them by another name.
  OR lanname = 'internal' AND prosrc IN (SELECT prosrc FROM outside)
UNION ALL
SELECT 'function ' || name || ', which may execute any text as a role that may write files or run programs'
FROM code WHERE lanname NOT IN ('c', 'internal') AND EXISTS (SELECT FROM file_role)
  AND (lanname NOT IN ('sql', 'plpgsql') OR prosrc ~* '\m(execute|copy)\M')
UNION ALL
SELECT CASE WHEN c.relkind = 'v' THEN 'view ' ELSE 'rule of ' END || c.oid::regclass::text || ', which calls what works outside of its transaction'
FROM named, pg_catalog.pg_rewrite AS r JOIN pg_catalog.pg_class AS c ON c.oid = r.ev_class
WHERE r.oid >= 16384 AND r.ev_type = '1' AND r.ev_action::text ~ named.in_tree
UNION ALL
SELECT 'a policy of ' || polrelid::regclass::text || ', which calls what works outside of its transaction'
FROM pg_catalog.pg_policy, named WHERE polqual::text ~ named.in_tree
UNION ALL
SELECT 'a check of domain ' || contypid::regtype::text || ', which calls what works outside of its transaction'
FROM pg_catalog.pg_constraint, named WHERE contypid <> 0 AND conbin::text ~ named.in_tree
UNION ALL
SELECT 'operator ' || oid::regoperator::text || ', which calls what works outside of its transaction'
FROM pg_catalog.pg_operator WHERE oid >= 16384 AND oprcode IN (SELECT oid FROM outside)
UNION ALL
SELECT 'cast of ' || castsource::regtype::text || ', which calls what works outside of its transaction'
FROM pg_catalog.pg_cast WHERE oid >= 16384 AND castfunc IN (SELECT oid FROM outside)
UNION ALL
SELECT 'aggregate ' || aggfnoid::text || ', which calls what works outside of its transaction'
FROM pg_catalog.pg_aggregate
WHERE aggfnoid >= 16384 AND (SELECT pg_catalog.array_agg(oid) FROM outside) && ARRAY[aggtransfn::oid, aggfinalfn::oid, aggcombinefn::oid,
  aggmtransfn::oid, aggmfinalfn::oid]
LIMIT 1
