// Two connections by mysql2, one after the other.
const mysql = require('mysql2/promise');

const { KURABE_HOST: host, KURABE_PORT: port, KURABE_USER: user, KURABE_DATABASE: database, KURABE_PASSWORD: password } = process.env;
(async () => {
  for (let n = 0; n < 2; n++) {
    const connection = await mysql.createConnection({ host, port: Number(port), user, password, database });
    const [rows] = await connection.query(process.argv[2]);
    if (rows[0].kurabe_own !== 42) throw new Error('the answer is wrong');
    await connection.end();
  }
})();
