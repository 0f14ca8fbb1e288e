// A small application that answers docs/app.openapi.yaml (kv, connect and webapp): node:http in a cluster of processes, with
// pg or mysql2. `node app.js PORT` runs it.
'use strict';

const cluster = require('node:cluster');
const crypto = require('node:crypto');
const http = require('node:http');
const os = require('node:os');
const config = require('./config.json');

const { database: at, prefix } = config;
const postgres = at.kind === 'postgres';
const perRequest = !config.connection.startsWith('pool');
const login = { host: at.host, port: at.port, user: at.user, password: at.password, database: at.name };
const processes = Math.min(config.workers, os.availableParallelism());
// The processes share the workers; the first ones have those that remain.
const index = cluster.isPrimary ? 0 : cluster.worker.id - 1;
const workers = Math.floor(config.workers / processes) + (index < config.workers % processes ? 1 : 0);
// Expressions of a time from microseconds since 1970 UTC, and back.
const timeOf = postgres ? 'to_timestamp(? / 1000000.0)' : "timestampadd(MICROSECOND, ?, TIMESTAMP'1970-01-01 00:00:00')";
const micros = (column) => (postgres
  ? `(extract(epoch FROM ${column}) * 1000000)::bigint`
  : `timestampdiff(MICROSECOND, TIMESTAMP'1970-01-01 00:00:00', ${column})`);
const userFields = `id, name, full_name, email, postal_code, address, version, ${micros('updated')} AS updated`;
const lineFields = `id, user_id, ip, ${micros('at')} AS at`;
const data = 'application/octet-stream';
const text = 'text/plain; charset=utf-8';

/** An answer that is not 200. */
class Refusal extends Error {
  constructor(status, reason, fields = {}) {
    super(reason);
    Object.assign(this, { status, fields });
  }
}

/** Connections of pg: rows and their number, for a statement with question marks. */
function postgresDatabase() {
  const pg = require('pg');
  const pool = new pg.Pool({ ...login, max: workers });
  // A connection of the pool that the server has ended is replaced by the next request.
  pool.on('error', () => {});
  const execute = async (connection, sql, parameters) => {
    let number = 0;
    const numbered = sql.replace(/\?/g, () => `$${(number += 1)}`);
    const result = await connection.query({ text: numbered, values: parameters, rowMode: 'array' });
    return { rows: result.rows, changed: result.rowCount };
  };
  const open = async () => {
    const connection = new pg.Client(login);
    await connection.connect();
    return connection;
  };
  return { take: () => pool.connect(), give: (connection, error) => connection.release(error), open, execute };
}

/** The same with mysql2. */
function mysqlDatabase() {
  const mysql = require('mysql2/promise');
  const options = { ...login, supportBigNumbers: true, bigNumberStrings: true, rowsAsArray: true };
  const pool = mysql.createPool({ ...options, connectionLimit: workers });
  const execute = async (connection, sql, parameters) => {
    const [result] = await connection.execute(sql, parameters);
    return { rows: result, changed: result.affectedRows };
  };
  const give = (connection, error) => (error ? connection.destroy() : connection.release());
  return { take: () => pool.getConnection(), give, open: () => mysql.createConnection(options), execute };
}

const database = postgres ? postgresDatabase() : mysqlDatabase();

/** A connection during a page: of the pool, or a new one. */
async function connected(anew, page) {
  const connection = await (anew ? database.open() : database.take());
  let failure;
  try {
    return await page({
      rows: async (sql, ...parameters) => (await database.execute(connection, sql, parameters)).rows,
      // Executes a statement that adds or changes one row.
      change: async (sql, ...parameters) => {
        const { changed } = await database.execute(connection, sql, parameters);
        if (changed !== 1) throw new Error(`the database acknowledged ${changed} rows instead of 1`);
      },
    });
  } catch (error) {
    failure = error instanceof Refusal ? undefined : error;
    throw error;
  } finally {
    if (anew) await connection.end().catch(() => {});
    else database.give(connection, failure);
  }
}

const held = (page) => connected(perRequest, page);
const record = (key, content) => [data, `${String(key).padStart(20, '0')}\n${content}`];
const tabbed = (...fields) => `${fields.join('\t')}\n`;

/** The record that a query names; undefined where it names none. */
function keyOf(query) {
  if (!query) return undefined;
  const found = /^key=([0-9]+)$/.exec(query);
  if (!found || BigInt(found[1]) >= 1n << 64n) throw new Refusal(400, 'the only parameter is key, a whole number: ?key=17');
  return BigInt(found[1]);
}

/** The key as the database has it: keys are signed there. */
function signed(key) {
  if (key >= 1n << 63n) throw new Refusal(404, `there is no record ${key}`);
  return String(key);
}

let made = 0;
/** A key that no other process makes: milliseconds, the process, and a number that rises within one. */
function newKey() {
  made = (made + 1) % 10_000;
  return String(BigInt(Date.now()) * 1_000_000n + BigInt(index * 10_000 + made));
}

/** Reads the row that the key names, or one that is drawn uniformly. */
async function read(anew, experiment, table, key) {
  const id = signed(key ?? crypto.randomInt(1, config.experiments[experiment].records + 1));
  const sql = `SELECT data FROM ${prefix}${table} WHERE id = ?`;
  const rows = await connected(anew, (one) => one.rows(sql, id));
  if (rows.length === 0) throw new Refusal(404, `there is no record ${id}`);
  return record(id, rows[0][0]);
}

async function write() {
  const key = newKey();
  const digest = (part) => crypto.createHash('md5').update(`${config.experiments.kv.seed}:${key}:${part}`).digest('hex');
  const content = [1, 2, 3].map(digest).join('');
  await held((one) => one.change(`INSERT INTO ${prefix}kv_w (id, data) VALUES (?, ?)`, key, content));
  return record(key, content);
}

async function count(table) {
  const rows = await held((one) => one.rows(`SELECT count(*) FROM ${prefix}${table}`));
  return record(rows[0][0], '');
}

async function show(what, table, fields, key) {
  const rows = await held((one) => one.rows(`SELECT ${fields} FROM ${prefix}${table} WHERE id = ?`, signed(key ?? 0n)));
  if (rows.length === 0) throw new Refusal(404, `there is no record ${key}`);
  return [data, tabbed(what, ...rows[0])];
}

/** Logs a user in and writes the log; changes the user and searches the postal codes if the input says so. */
function webapp(query) {
  const input = Object.fromEntries(new URLSearchParams(query));
  for (const name of ['name', 'password', 'ip', 'at']) {
    if (input[name] === undefined) throw new Refusal(400, `the parameter ${name} is missing`);
  }
  return held(async (one) => {
    const sql = `SELECT ${userFields} FROM ${prefix}webapp_users WHERE name = ? AND password = ?`;
    const [user] = await one.rows(sql, input.name, input.password);
    if (user === undefined) throw new Refusal(403, 'no user has this name and password');
    const line = [newKey(), user[0], input.ip, input.at];
    await one.change(`INSERT INTO ${prefix}webapp_log (id, user_id, ip, at) VALUES (?, ?, ?, ${timeOf})`, ...line);
    let body = tabbed('user', ...user) + tabbed('log', ...line);
    if (input.version !== undefined) {
      const { email, postal_code, address, version, updated } = input;
      await one.change(`UPDATE ${prefix}webapp_users SET email = ?, postal_code = ?, address = ?, version = ?,`
        + ` updated = ${timeOf} WHERE id = ?`, email, postal_code, address, version, updated, user[0]);
      body += tabbed('changed', version);
    }
    if (input.prefix !== undefined) {
      // Codes have seven digits.
      const towns = await one.rows(`SELECT code, prefecture, city, town, kana FROM ${prefix}webapp_codes`
        + ' WHERE code BETWEEN ? AND ? ORDER BY code, number', `${input.prefix}00`, `${input.prefix}99`);
      body += tabbed('found', input.prefix, towns.length) + towns.map((town) => tabbed(...town)).join('');
    }
    return [data, body];
  });
}

const about = (name) => ['application/json', `${JSON.stringify(config.about[name])}\n`];
const isAdded = (key) => key !== undefined && key > BigInt(config.experiments.kv.records);
const pages = {
  '/health': ['GET', () => held((one) => one.rows('SELECT 1')).then(() => [text, 'ok\n'])],
  '/kv': ['GET', () => about('kv')],
  // Records 1 to `records` are in one table, those that were added in another.
  '/kv/read': ['GET', (key) => read(perRequest, 'kv', isAdded(key) ? 'kv_w' : 'kv_r', key)],
  '/kv/write': ['POST', write],
  '/kv/count': ['GET', () => count('kv_w')],
  '/connect': ['GET', () => about('connect')],
  '/connect/read': ['GET', (key) => read(perRequest, 'connect', 'connect', key)],
  '/connect/new': ['GET', (key) => read(true, 'connect', 'connect', key)],
  '/webapp': ['GET', () => about('webapp')],
  '/webapp/request': ['POST', webapp],
  '/webapp/count': ['GET', () => count('webapp_log')],
  '/webapp/log': ['GET', (key) => show('log', 'webapp_log', lineFields, key)],
  '/webapp/user': ['GET', (key) => show('user', 'webapp_users', userFields, key)],
};

/** The type and the body. */
async function answer(request) {
  const [path, query = ''] = request.url.split('?', 2);
  const host = (request.headers.host ?? 'localhost').replace(/:\d+$/, '');
  if (!/^(localhost|[0-9.]+|\[.*\])$/i.test(host)) {
    throw new Refusal(421, 'this host name is not accepted; use 127.0.0.1 or localhost');
  }
  if (request.headers.authorization !== config.authorization) {
    throw new Refusal(401, "user and password are in the URL that 'kurabe up stack' printed");
  }
  if (!Object.hasOwn(pages, path)) throw new Refusal(404, 'there is no such page');
  const [method, page] = pages[path];
  const experiment = path.split('/')[1];
  if (path !== '/health' && config.about[experiment] === undefined) {
    throw new Refusal(501, `${experiment} is not served: its data is not loaded`);
  }
  if (request.method !== method) throw new Refusal(405, `this page is requested by ${method}`, { Allow: method });
  return page(path === '/webapp/request' ? query : keyOf(query));
}

// So many requests are processed at once; the others wait.
let free = workers;
const waiting = [];
async function inTurn(task) {
  if (free === 0) await new Promise((resolve) => { waiting.push(resolve); });
  else free -= 1;
  try {
    return await task();
  } finally {
    const next = waiting.shift();
    if (next) next();
    else free += 1;
  }
}

async function serve(request, response) {
  let status = 200;
  let fields = {};
  let type;
  let body;
  try {
    [type, body] = await inTurn(() => answer(request));
  } catch (error) {
    // If it is no refusal, the database is gone, full or too slow, or refused the statement.
    const refused = error instanceof Refusal;
    status = refused ? error.status : 503;
    fields = refused ? error.fields : { 'Retry-After': 1 };
    [type, body] = [text, `${refused ? '' : `${config.engine}: `}${String(error.message || error.code).replace(/[\r\n]+/g, ' ')}\n`];
  }
  response.writeHead(status, { ...fields, 'Content-Type': type, 'Content-Length': Buffer.byteLength(body) });
  response.end(body);
}

if (cluster.isPrimary) {
  for (let at = 0; at < processes; at += 1) cluster.fork();
  // Without one of its processes it is not the application that was to be measured.
  cluster.on('exit', (worker, code, signal) => {
    console.error(`a process of the cluster ended: ${signal ?? code}`);
    process.exit(1);
  });
} else {
  const server = http.createServer(serve);
  server.keepAliveTimeout = 75_000;
  server.listen({ port: Number(process.argv[2]), host: '127.0.0.1', backlog: 4096 });
}
