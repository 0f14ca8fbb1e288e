// Loaded before PouchDB Server: answers only requests with the user and password of this throwaway server. Its own users
// cost a key derivation for each request; this costs a comparison, after a digest for each connection.
'use strict';
const { createHash } = require('crypto');
const { Server } = require('http');
const path = require('path');

// Beside this file: the digest of the header's value.
const expected = require('fs').readFileSync(path.join(__dirname, 'login'), 'utf8');
const emit = Server.prototype.emit;
const known = Symbol('the login of a connection');

function isRight(socket, given) {
  if (given === undefined) return false;
  if (socket[known] === given) return true;
  if (createHash('sha256').update(given).digest('hex') !== expected) return false;
  socket[known] = given;
  return true;
}

Server.prototype.emit = function (event, request, response) {
  if (event !== 'request') return emit.apply(this, arguments);
  // Whether all parts are up is public, as in CouchDB.
  if (!(request.method === 'GET' && request.url === '/_session') && !isRight(request.socket, request.headers.authorization)) {
    response.writeHead(401, { 'Content-Type': 'application/json', 'WWW-Authenticate': 'Basic realm="server"' });
    response.end('{"error":"unauthorized","reason":"Name or password is incorrect."}\n');
    return true;
  }
  // The server has no users of its own: everybody who gets there is its administrator.
  delete request.headers.authorization;
  return emit.apply(this, arguments);
};
