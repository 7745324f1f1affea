// A real issuer (oidc-provider) of JWT access tokens whose keys can be rotated, for tests. It has one client, a machine; others can
// register themselves. People sign in on oidc-provider's own pages, by name alone: alice, who is in the group dev, and others in none.
//
// Arguments: the folder of the modules, a file in which keys are kept over restarts, and the port. Prints the issuer's address,
// and ends when its standard input does. POST /control changes it, GET /control counts.
import fs from 'node:fs';
import http from 'node:http';
import crypto from 'node:crypto';
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

const [modules, file, port] = process.argv.slice(2);
const load = createRequire(`${modules}/package.json`);
const { default: Provider } = await import(pathToFileURL(load.resolve('oidc-provider')));
console.log = console.info = console.warn = () => {};

const settings = {
  keys: ['rsa-1'], // published; a name that begins with rsa is an RSA key, others are P-256
  sign: 'rsa-1', // the one that signs
  lifetime: 3600,
  skew: 0, // by how many seconds its clock is ahead
};
const groups = { alice: ['dev'] };
const counts = { jwks: 0 };
const now = Date.now;
Date.now = () => now() + settings.skew * 1000;

const kept = fs.existsSync(file) ? JSON.parse(fs.readFileSync(file)) : {};
const isRsa = (kid) => kid.startsWith('rsa');
function key(kid) {
  if (!kept[kid]) {
    const pair = isRsa(kid) ? crypto.generateKeyPairSync('rsa', { modulusLength: 2048 }) : crypto.generateKeyPairSync('ec', { namedCurve: 'P-256' });
    kept[kid] = { ...pair.privateKey.export({ format: 'jwk' }), kid, use: 'sig', alg: isRsa(kid) ? 'RS256' : 'ES256' };
    fs.writeFileSync(file, JSON.stringify(kept));
  }
  return kept[kid];
}

let answer;
const server = http.createServer((req, res) => answer(req, res));
await new Promise((done) => server.listen(Number(port), '127.0.0.1', done));
const issuer = `http://127.0.0.1:${server.address().port}`;

// The keys of a provider are fixed, so other keys are another provider.
const provider = () => new Provider(issuer, {
  jwks: { keys: settings.keys.map(key) },
  clients: [{
    client_id: 'machine', client_secret: 'secret', grant_types: ['client_credentials'], redirect_uris: [], response_types: [],
    id_token_signed_response_alg: isRsa(settings.sign) ? 'RS256' : 'ES256',
  }],
  enabledJWA: { idTokenSigningAlgValues: ['RS256', 'ES256'] },
  scopes: ['mcp', 'mcp:read', 'offline_access'],
  issueRefreshToken: (ctx, client) => client.grantTypeAllowed('refresh_token'),
  cookies: { keys: ['test'] },
  findAccount: (ctx, id) => ({ accountId: id, claims: () => ({ sub: id }) }),
  extraTokenClaims: (ctx, { accountId: name }) => (name ? { email: `${name}@example.com`, groups: groups[name] ?? [] } : { groups: ['staff'] }),
  features: {
    devInteractions: { enabled: true },
    registration: { enabled: true },
    clientCredentials: { enabled: true },
    resourceIndicators: {
      enabled: true,
      getResourceServerInfo: (ctx, resource) => ({
        scope: 'mcp mcp:read', audience: resource, accessTokenTTL: settings.lifetime, accessTokenFormat: 'jwt',
        jwt: { sign: { alg: isRsa(settings.sign) ? 'RS256' : 'ES256', kid: settings.sign } },
      }),
    },
  },
  ttl: { ClientCredentials: () => settings.lifetime },
});

let callback = provider().callback();
const json = (res, value) => res.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(value));
answer = async (req, res) => {
  try {
    if (req.url === '/control') {
      let text = '';
      for await (const part of req) text += part;
      if (text) {
        Object.assign(settings, JSON.parse(text));
        callback = provider().callback();
      }
      return json(res, counts);
    }
    if (req.url === '/jwks') counts.jwks++;
    return callback(req, res);
  } catch (error) {
    process.stderr.write(`${error.stack}\n`);
    if (!res.headersSent) res.writeHead(500).end();
  }
};

process.stdout.write(`${issuer}\n`);
process.stdin.resume();
process.stdin.on('end', () => process.exit(0));
