// An agent on the official TypeScript SDK that goes by a configuration file: calls one server again and again until it is
// told to stop, and says how that went.
import { existsSync, readFileSync } from "node:fs";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";

const [config, name, stop] = process.argv.slice(2);
const entry = JSON.parse(readFileSync(config, "utf8")).mcpServers[name];
const seen = { calls: 0, answered: 0, failed: 0, texts: [], closed: false };
const client = new Client({ name: "drill", version: "1" });
let done = false;
client.onclose = () => { if (!done) seen.closed = true; };
const env = { ...process.env, ...(entry.env ?? {}) };
await client.connect(new StdioClientTransport({ command: entry.command, args: entry.args, env, stderr: "ignore" }));
const tools = (await client.listTools()).tools.map((tool) => tool.name);
seen.tools = tools.length;
for (;;) {
  const message = String(++seen.calls);
  const result = await client.callTool({ name: "echo", arguments: { message } });
  const text = result.content[0].text;
  if (result.isError) {
    seen.failed++;
    if (!seen.texts.includes(text)) seen.texts.push(text);
  } else {
    if (text !== `Echo: ${message}`) throw new Error(text);
    seen.answered++;
    if (existsSync(stop)) break;
  }
  await new Promise((resolve) => setTimeout(resolve, 20));
}
const after = (await client.listTools()).tools.map((tool) => tool.name);
if (after.join() !== tools.join()) throw new Error("the tools are others");
done = true;
await client.close();
console.log(JSON.stringify(seen));
