// Vercel's AI SDK, with its own MCP client.
import { createMCPClient } from '@ai-sdk/mcp';
import { Experimental_StdioMCPTransport as Stdio } from '@ai-sdk/mcp/mcp-stdio';
import { createOpenAI } from '@ai-sdk/openai';
import { generateText, stepCountIs } from 'ai';

const [url, command, ...args] = process.argv.slice(2);
const client = await createMCPClient({ transport: new Stdio({ command, args }) });
try {
  const model = createOpenAI({ baseURL: `${url}/v1`, apiKey: 'none' })('scripted');
  const said = await generateText({ model, tools: await client.tools(), stopWhen: stepCountIs(5), prompt: 'Use the tools.' });
  console.log(said.text);
} finally {
  await client.close();
}
