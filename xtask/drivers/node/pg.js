// Two connections by pg, one after the other.
const { Client } = require('pg');

const { KURABE_HOST: host, KURABE_PORT: port, KURABE_USER: user, KURABE_DATABASE: database, KURABE_PASSWORD: password } = process.env;
(async () => {
  for (let n = 0; n < 2; n++) {
    const client = new Client({ host, port: Number(port), user, password, database });
    await client.connect();
    const { rows } = await client.query(process.argv[2]);
    if (rows[0].kurabe_own !== 42) throw new Error('the answer is wrong');
    await client.end();
  }
})();
