// An agent on the official TypeScript SDKs at the address of all servers: the page of a tool, as a host finds it, and a task.
//
//     agent.mjs legacy|modern URL SERVER
import { getToolUiResourceUri } from "@modelcontextprotocol/ext-apps/app-bridge";
const [era, url, server] = process.argv.slice(2);
const modern = era === "modern";
const expect = (what, why) => { if (!what) throw new Error(JSON.stringify(why)); };
const { Client } = modern
  ? await import("@modelcontextprotocol/client")
  : await import("@modelcontextprotocol/sdk/client/index.js");
const { StreamableHTTPClientTransport } = modern
  ? await import("@modelcontextprotocol/client")
  : await import("@modelcontextprotocol/sdk/client/streamableHttp.js");
const extensions = {
  "io.modelcontextprotocol/ui": { mimeTypes: ["text/html;profile=mcp-app"] },
  "io.modelcontextprotocol/tasks": {},
};
const options = modern ? { versionNegotiation: { mode: { pin: "2026-07-28" } }, capabilities: { extensions } } : {};
const info = { name: "drill", version: "1" };
const client = new Client(info, options);
const transport = new StreamableHTTPClientTransport(new URL(url));
await client.connect(transport);
const version = modern ? client.getNegotiatedProtocolVersion() : transport.protocolVersion;

// The page: as a host looks for it.
const { tools } = await client.listTools();
const uri = getToolUiResourceUri(tools.find((tool) => tool.name === `${server}__clock`));
expect(uri === `ui://${server}/clock/app.html`, uri);
const [page] = (await client.readResource({ uri })).contents;
expect(page.uri === uri && page.mimeType === "text/html;profile=mcp-app" && page.text.includes("clock"), page);
const noon = await client.callTool({ name: `${server}__clock`, arguments: {} });
expect(noon.content[0].text === "noon", noon);

// The task.
if (modern) {
  const { createTaskSessionFromClient, resultFromTaskOutcome } = await import("@modelcontextprotocol/ext-tasks/client");
  let [polls, last] = [0, 0];
  const rawDispatch = async (request) => {
    const { method, params } = request;
    if (method === "tasks/get") polls += 1;
    const headers = {
      "content-type": "application/json", accept: "application/json, text/event-stream",
      "mcp-protocol-version": version, "mcp-method": method,
    };
    const name = params?.taskId ?? params?.name;
    if (name) headers["mcp-name"] = name;
    const body = JSON.stringify({ jsonrpc: "2.0", id: ++last, ...request });
    const said = await (await fetch(url, { method: "POST", headers, body })).text();
    const data = said.split("\n").filter((line) => line.startsWith("data: ")).pop();
    return JSON.parse(data ? data.slice(6) : said);
  };
  const v2RequestFraming = { protocolVersion: version, clientInfo: info, clientCapabilities: { extensions } };
  const session = createTaskSessionFromClient(client, { endpointId: "gateway", rawDispatch, v2RequestFraming });
  const execution = await session.callTool(`${server}__slow`, { seconds: 0.2 });
  const result = resultFromTaskOutcome((await execution.settle()).outcome);
  expect(result.content[0].text === "slept 0.2" && polls > 0, { result, polls });
  await session.close();
} else {
  const steps = [];
  const params = { name: `${server}__slow`, arguments: { seconds: 0.2 } };
  const stream = client.experimental.tasks.callToolStream(params, undefined, { task: { ttl: 60000 } });
  let id;
  for await (const message of stream) {
    steps.push(message.type);
    if (message.type === "taskCreated") id = message.task.taskId;
    if (message.type === "error") throw message.error;
    if (message.type === "result") expect(message.result.content[0].text === "slept 0.2", message.result);
  }
  expect(steps.includes("taskCreated") && steps.at(-1) === "result", steps);
  const listed = await client.experimental.tasks.listTasks();
  expect(listed.tasks.length === 1 && listed.tasks[0].taskId === id, { listed, id });
}
console.log(`${version} page and task`);
await client.close();
process.exit(0);
