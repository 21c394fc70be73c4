// A server of the SDK over HTTP, as its documentation has it: one transport for each session.
// Prints where it listens.
import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';

const transports = new Map();

async function open() {
  const transport = new StreamableHTTPServerTransport({
    sessionIdGenerator: () => randomUUID().replaceAll('-', ''),
    enableJsonResponse: true,
    onsessioninitialized: (id) => transports.set(id, transport),
  });
  const server = new McpServer({ name: 'bench', version: '1' });
  server.registerTool('none', { description: 'Does nothing.' }, () => ({ content: [] }));
  await server.connect(transport);
  return transport;
}

const server = createServer(async (request, response) => {
  const transport = transports.get(request.headers['mcp-session-id']) ?? await open();
  await transport.handleRequest(request, response);
});
server.listen(0, '127.0.0.1', () => console.log(`http://127.0.0.1:${server.address().port}`));
