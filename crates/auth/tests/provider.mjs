// A real authorization server (oidc-provider) and a small protected MCP server, for tests. Everybody who logs in is let in.
//
// Prints one line of JSON with its addresses, and ends when its standard input does. POST /control at the authorization server
// changes how both behave; GET /control counts what was asked of them.
import http from 'node:http';
import crypto from 'node:crypto';
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

const modules = process.argv[2];
const load = createRequire(`${modules}/package.json`);
const { default: Provider } = await import(pathToFileURL(load.resolve('oidc-provider')));
console.log = console.info = console.warn = () => {};

const settings = {
  lifetime: 3600, // of access tokens, in seconds
  token: 'ok', // how the token endpoint behaves: ok, fail, busy, nonsense, refuse, unknown-client, echo, hang, swallow, github, bad-request
  delay: 0, // before the answer to a token request is sent, in milliseconds
  scope: 'mcp:read', // what the MCP server demands
  challenge_scope: true,
  servers: undefined, // the authorization servers that the MCP server names
  metadata: {}, // changes to the authorization server's metadata
};
const counts = { token: 0, refresh: 0, refused: 0, registered: 0, revoked: 0, mcp: 0, granted: 0, calls: 0, ran: {} };
let refuseUntil = 0; // tokens with a smaller number are refused
const numbers = new Map();
const grants = new Set();

const listen = (handler) => new Promise((done) => {
  const server = http.createServer(handler);
  server.keepAliveTimeout = 1000;
  server.listen(0, '127.0.0.1', () => done(`http://127.0.0.1:${server.address().port}`));
});

let authorize = (req, res) => res.writeHead(503).end();
let protect = authorize;
const issuer = await listen((req, res) => authorize(req, res));
const mcp = `${await listen((req, res) => protect(req, res))}/mcp`;
const { privateKey, publicKey } = crypto.generateKeyPairSync('ec', { namedCurve: 'P-256' });
const rsa = crypto.generateKeyPairSync('rsa', { modulusLength: 2048 });
const jwk = (key, alg, kid) => ({ ...key.export({ format: 'jwk' }), alg, kid, use: 'sig' });
const machine = (client_id, more) => ({
  client_id, grant_types: ['client_credentials'], redirect_uris: [], response_types: [], scope: 'mcp:read mcp:write', ...more,
});

const provider = new Provider(issuer, {
  clients: [
    machine('machine', { client_secret: 'the-secret:of the+machine%2', token_endpoint_auth_method: 'client_secret_basic' }),
    machine('machine-es', { token_endpoint_auth_method: 'private_key_jwt', token_endpoint_auth_signing_alg: 'ES256', jwks: { keys: [jwk(publicKey, 'ES256', 'e')] } }),
    machine('machine-rs', { token_endpoint_auth_method: 'private_key_jwt', token_endpoint_auth_signing_alg: 'RS256', jwks: { keys: [jwk(rsa.publicKey, 'RS256', 'r')] } }),
  ],
  scopes: ['mcp:read', 'mcp:write', 'offline_access'],
  cookies: { keys: ['test'] },
  findAccount: (ctx, id) => ({ accountId: id, claims: () => ({ sub: id }) }),
  features: {
    devInteractions: { enabled: false },
    registration: { enabled: true },
    revocation: { enabled: true },
    clientCredentials: { enabled: true },
    resourceIndicators: {
      enabled: true,
      useGrantedResource: () => true,
      getResourceServerInfo: (ctx, resource) => ({ scope: 'mcp:read mcp:write', audience: resource, accessTokenTTL: settings.lifetime, accessTokenFormat: 'opaque' }),
    },
  },
  interactions: { url: (ctx, interaction) => `/interaction/${interaction.uid}` },
  issueRefreshToken: (ctx, client) => client.grantTypeAllowed('refresh_token'),
  rotateRefreshToken: () => true,
  ttl: { ClientCredentials: () => settings.lifetime, Interaction: 600, Session: 600, Grant: 86400, RefreshToken: 86400 },
});
provider.on('registration_create.success', () => counts.registered++);
provider.on('grant.revoked', () => counts.revoked++);
provider.on('grant.success', (ctx) => { counts.granted++; if (ctx.oidc.params.grant_type === 'refresh_token') counts.refresh++; });
provider.on('grant.error', () => counts.refused++);
for (const kind of ['access_token', 'client_credentials']) {
  provider.on(`${kind}.saved`, (token) => numbers.set(token.jti, numbers.size + 1));
}

// Everything that nobody but the two sides of a login may know.
const secrets = new Set();
for (const kind of ['access_token', 'client_credentials', 'refresh_token', 'authorization_code']) {
  provider.on(`${kind}.saved`, (token) => secrets.add(token.jti));
}
provider.on('registration_create.success', (ctx, client) => client.clientSecret && secrets.add(client.clientSecret));
provider.on('authorization.accepted', (ctx) => secrets.add(ctx.oidc.params.state));
provider.on('grant.success', (ctx) => ctx.oidc.params.code_verifier && secrets.add(ctx.oidc.params.code_verifier));

async function interact(req, res) {
  const { params, prompt, session, grantId } = await provider.interactionDetails(req, res);
  if (prompt.name === 'login') return provider.interactionFinished(req, res, { login: { accountId: 'somebody' } });
  const grant = grantId ? await provider.Grant.find(grantId) : new provider.Grant({ accountId: session.accountId, clientId: params.client_id });
  grant.addOIDCScope(params.scope ?? '');
  grant.addResourceScope(params.resource, params.scope ?? '');
  const id = await grant.save();
  grants.add(id);
  return provider.interactionFinished(req, res, { consent: { grantId: id } }, { mergeWithLastSubmission: true });
}

const body = async (req) => { let text = ''; for await (const part of req) text += part; return text; };
const json = (res, value, status = 200, headers = {}) => res.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(value));

async function control(req, res) {
  if (req.method === 'GET') return json(res, counts);
  const { refuse_tokens, revoke_all, ...rest } = JSON.parse(await body(req));
  Object.assign(settings, rest);
  if (refuse_tokens) refuseUntil = numbers.size + 1;
  if (revoke_all) {
    for (const id of grants) { await provider.RefreshToken.revokeByGrantId(id); await provider.AccessToken.revokeByGrantId(id); }
    refuseUntil = numbers.size + 1;
  }
  return json(res, counts);
}

const callback = provider.callback();
authorize = async (req, res) => {
  try {
    if (req.url === '/control') return await control(req, res);
    if (req.url === '/secrets') return json(res, [...secrets]);
    if (req.url.startsWith('/interaction/')) return await interact(req, res);
    if (req.url.startsWith('/.well-known/oauth-authorization-server')) return json(res, {}, 404);
    if (req.url === '/.well-known/openid-configuration' && Object.keys(settings.metadata).length) {
      const end = res.end.bind(res);
      res.end = (text) => {
        const changed = JSON.stringify({ ...JSON.parse(text), ...settings.metadata });
        res.setHeader('content-length', Buffer.byteLength(changed));
        return end(changed);
      };
    }
    if (req.url === '/token' && req.method === 'POST') {
      counts.token++;
      if (settings.delay) {
        const end = res.end.bind(res);
        res.end = (...answer) => { setTimeout(() => end(...answer), settings.delay); return res; };
      }
      switch (settings.token) {
        case 'fail': return json(res, { error: 'server_error' }, 500);
        case 'busy': return json(res, { error: 'temporarily_unavailable' }, 503, { 'retry-after': '7' });
        case 'nonsense': return res.writeHead(200, { 'content-type': 'text/html' }).end('<h1>Welcome to the hotel wireless network</h1>');
        case 'refuse': return json(res, { error: 'invalid_grant', error_description: 'the grant was taken back' }, 400);
        case 'github': return json(res, { error: 'bad_refresh_token', error_description: 'The refresh token passed is incorrect or expired.' });
        case 'bad-request': return json(res, { error: 'invalid_request' }, 400);
        case 'unknown-client': return json(res, { error: 'invalid_client' }, 401);
        case 'echo': return json(res, { error: 'invalid_request', error_description: `cannot read ${decodeURIComponent(await body(req))} of ${req.headers.authorization}` }, 400);
        case 'hang': return;
        // The tokens are made, and nobody gets them.
        case 'swallow': res.end = () => { req.socket.destroy(); return res; }; break;
      }
    }
    return callback(req, res);
  } catch (error) {
    process.stderr.write(`${error.stack}\n`);
    if (!res.headersSent) res.writeHead(500).end();
  }
};

protect = async (req, res) => {
  const known = '/.well-known/oauth-protected-resource';
  if (req.url === `${known}/mcp`) {
    return json(res, { resource: mcp, authorization_servers: settings.servers ?? [issuer], scopes_supported: ['mcp:read'] });
  }
  if (req.url !== '/mcp') return json(res, {}, 404);
  const text = await body(req);
  const challenge = (more) => ({ 'www-authenticate': `Bearer ${settings.challenge_scope ? `scope="${settings.scope}", ` : ''}resource_metadata="${new URL(known, mcp)}/mcp"${more}` });
  const said = /^Bearer (.+)$/.exec(req.headers.authorization ?? '')?.[1];
  if (!said) return json(res, {}, 401, challenge(''));
  const token = await provider.AccessToken.find(said) ?? await provider.ClientCredentials.find(said);
  const isGood = token && !token.isExpired && [token.aud].flat().includes(mcp) && numbers.get(token.jti) >= refuseUntil;
  if (!isGood) return json(res, {}, 401, challenge(', error="invalid_token"'));
  const scopes = (token.scope ?? '').split(' ');
  if (!settings.scope.split(' ').every((scope) => scopes.includes(scope))) return json(res, {}, 403, challenge(', error="insufficient_scope"'));
  counts.mcp++;
  if (req.method !== 'POST') return res.writeHead(405).end();
  const message = JSON.parse(text || '{}');
  if (message.id === undefined) return res.writeHead(202).end();
  const result = results[message.method]?.(message.params);
  const answer = result ? { result } : { error: { code: -32601, message: 'Method not found' } };
  return json(res, { jsonrpc: '2.0', id: message.id, ...answer });
};

// As much of an MCP server as an agent needs.
const results = {
  ping: () => ({}),
  initialize: () => ({ protocolVersion: '2025-11-25', capabilities: { tools: {} }, serverInfo: { name: 'protected', version: '1' } }),
  'tools/list': () => ({ tools: [{ name: 'echo', inputSchema: { type: 'object' } }] }),
  'tools/call': (params) => {
    counts.calls++;
    const name = params.arguments?.run;
    if (name) counts.ran[name] = (counts.ran[name] ?? 0) + 1;
    return { content: [{ type: 'text', text: JSON.stringify(params.arguments) }] };
  },
};

process.stdout.write(`${JSON.stringify({
  issuer, mcp,
  es256: privateKey.export({ type: 'pkcs8', format: 'pem' }), rs256: rsa.privateKey.export({ type: 'pkcs8', format: 'pem' }),
  sec1: privateKey.export({ type: 'sec1', format: 'pem' }),
})}\n`);
process.stdin.resume();
process.stdin.on('end', () => process.exit(0));
