// One agent on the official TypeScript SDK at a gateway that wants it to sign in. Speaks what agent.py beside it says.
//
//     agent.mjs legacy|modern URL
import readline from 'node:readline';

const [era, address] = process.argv.slice(2);
const modern = era === 'modern';
// The first major version speaks one era only; the second is another package.
const { Client, StreamableHTTPClientTransport, UnauthorizedError } = modern
  ? await import('@modelcontextprotocol/client')
  : {
      ...(await import('@modelcontextprotocol/sdk/client/index.js')),
      ...(await import('@modelcontextprotocol/sdk/client/streamableHttp.js')),
      ...(await import('@modelcontextprotocol/sdk/client/auth.js')),
    };

const say = (message) => process.stdout.write(`${JSON.stringify(message)}\n`);
const lines = readline.createInterface({ input: process.stdin })[Symbol.asyncIterator]();
const hear = async () => (await lines.next()).value;

// What an agent keeps on disk.
const kept = {};
const authProvider = {
  redirectUrl: 'http://127.0.0.1:8976/callback',
  get clientMetadata() {
    return { client_name: 'try-doors', redirect_uris: [this.redirectUrl], grant_types: ['authorization_code', 'refresh_token'], token_endpoint_auth_method: 'none' };
  },
  state: () => (kept.state ??= crypto.randomUUID()),
  clientInformation: () => kept.client,
  saveClientInformation: (client) => { kept.client = client; },
  tokens: () => kept.tokens,
  saveTokens: (tokens) => { kept.tokens = tokens; },
  saveCodeVerifier: (verifier) => { kept.verifier = verifier; },
  codeVerifier: () => kept.verifier,
  saveDiscoveryState: (found) => { kept.found = found; },
  discoveryState: () => kept.found,
  redirectToAuthorization: (url) => { say({ visit: url.href }); },
};

const options = modern ? { versionNegotiation: { mode: { pin: '2026-07-28' } } } : {};
const connect = async () => {
  const client = new Client({ name: 'try-doors', version: '1' }, options);
  const transport = new StreamableHTTPClientTransport(new URL(address), { authProvider });
  try {
    await client.connect(transport);
    return client;
  } catch (error) {
    if (!(error instanceof UnauthorizedError) || kept.tokens) throw error;
    const back = new URL(await hear());
    if (back.searchParams.get('state') !== kept.state) throw new Error('somebody else came back');
    await transport.finishAuth(modern ? back.searchParams : back.searchParams.get('code'));
    return connect();
  }
};

const why = (error) => `${error.name}: ${error.message}${error.cause ? ` (${error.cause.message})` : ''}`;
const names = async (client) => (await client.listTools()).tools.map((one) => one.name);
try {
  const client = await connect();
  say({ tools: await names(client) });
  for (let line; (line = await hear()) !== undefined;) {
    const { tool, arguments: words = {} } = JSON.parse(line);
    try {
      if (tool === null) say({ tools: await names(client) });
      else say({ text: (await client.callTool({ name: tool, arguments: words })).content[0].text });
    } catch (error) {
      say({ failed: why(error) });
    }
  }
  await client.close();
} catch (error) {
  say({ failed: why(error) });
}
process.exit(0);
