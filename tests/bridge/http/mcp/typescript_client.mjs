// A client of the TypeScript SDK, of one era: prints what the bridge answered, as one line of JSON.
import { createRequire } from "node:module";
const [folder, era, url] = process.argv.slice(2);
const from = createRequire(`${folder}/`);
const legacy = era === "legacy";
const sdk = (part) => from(`@modelcontextprotocol/sdk/client/${part}`);
const { Client, StreamableHTTPClientTransport } = legacy
  ? { ...sdk("index.js"), ...sdk("streamableHttp.js") }
  : from("@modelcontextprotocol/client");
const client = new Client({ name: "typescript", version: "1" }, legacy ? {} : { versionNegotiation: { mode: { pin: era } } });
await client.connect(new StreamableHTTPClientTransport(new URL(url)));
const answers = {
  tools: (await client.listTools()).tools.map((tool) => tool.name),
  waiting: await client.callTool({ name: "waiting", arguments: {} }),
  refused: await client.callTool({ name: "look", arguments: { job: "x" } }),
  resources: (await client.listResources()).resources.map((resource) => resource.uri),
  read: (await client.readResource({ uri: "service://waiting" })).contents[0].text,
  prompt: (await client.getPrompt({ name: "verifier", arguments: { goal: "build it" } })).messages[0].content.text,
};
console.log(JSON.stringify(answers));
await client.close();
