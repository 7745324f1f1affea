// A server on the official TypeScript SDK (1.x, so of the legacy era) with a tool that has a page and a tool that runs as a task.
import { InMemoryTaskStore } from "@modelcontextprotocol/sdk/experimental/tasks/stores/in-memory.js";
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js";
import { z } from "zod";

const PAGE = "ui://clock/app.html";
const MIME = "text/html;profile=mcp-app";
const server = new McpServer(
  { name: "apps", version: "1" },
  {
    capabilities: {
      tasks: { list: {}, cancel: {}, requests: { tools: { call: {} } } },
      extensions: { "io.modelcontextprotocol/ui": {} },
    },
    taskStore: new InMemoryTaskStore(),
  },
);
server.registerTool("clock", { _meta: { ui: { resourceUri: PAGE } } }, async () => ({
  content: [{ type: "text", text: "noon" }],
}));
server.registerResource("clock", PAGE, { mimeType: MIME }, async (uri) => ({
  contents: [{ uri: uri.href, mimeType: MIME, text: "<!doctype html><title>clock</title>" }],
}));
server.experimental.tasks.registerToolTask(
  "slow",
  { inputSchema: { seconds: z.number() }, execution: { taskSupport: "optional" } },
  {
    createTask: async ({ seconds }, { taskStore, taskRequestedTtl }) => {
      const task = await taskStore.createTask({ ttl: taskRequestedTtl, pollInterval: 50 });
      setTimeout(() => {
        const result = { content: [{ type: "text", text: `slept ${seconds}` }] };
        taskStore.storeTaskResult(task.taskId, "completed", result).catch(() => {});
      }, seconds * 1000);
      return { task };
    },
    getTask: async (_, { taskId, taskStore }) => taskStore.getTask(taskId),
    getTaskResult: async (_, { taskId, taskStore }) => taskStore.getTaskResult(taskId),
  },
);
await server.connect(new StdioServerTransport());
