/** Runs with the tools of OpenAI, and with those that the SDK has kinds of their own for. */
import { calls, PIXEL, type Scenario, says } from './scenario-tools.ts';
import type { Sdk } from './sdks.ts';

export const HOSTED_SCENARIOS: readonly Scenario[] = [
  {
    name: 'web-search',
    agent: (sdk, model) => new sdk.Agent({ name: 'Helper', model, tools: [sdk.webSearchTool()] }),
    script: [
      calls(
        {
          item: {
            type: 'web_search_call',
            status: 'completed',
            action: {
              type: 'search',
              query: 'sabir',
              sources: [{ type: 'url', url: 'https://a.example/' }],
            },
          },
          events: [
            { type: 'response.web_search_call.in_progress' },
            { type: 'response.web_search_call.searching' },
            { type: 'response.web_search_call.completed' },
          ],
        },
        {
          text: 'A common tongue.',
          citations: [
            {
              type: 'url_citation',
              url: 'https://a.example/',
              title: 'A',
              start_index: 0,
              end_index: 8,
            },
            {
              type: 'url_citation',
              url: 'https://b.example/',
              title: 'B',
              start_index: 9,
              end_index: 15,
            },
            {
              type: 'url_citation',
              url: 'https://a.example/',
              title: 'A',
              start_index: 9,
              end_index: 15,
            },
          ],
        },
      ),
    ],
  },
  {
    name: 'image-generation',
    agent: (sdk, model) =>
      new sdk.Agent({ name: 'Helper', model, tools: [sdk.imageGenerationTool()] }),
    script: [
      calls(
        {
          item: {
            type: 'image_generation_call',
            status: 'completed',
            result: PIXEL,
            output_format: 'webp',
          },
          events: [
            { type: 'response.image_generation_call.in_progress' },
            {
              type: 'response.image_generation_call.partial_image',
              partial_image_index: 0,
              partial_image_b64: 'aGFsZg==',
              output_format: 'webp',
            },
            { type: 'response.image_generation_call.completed' },
          ],
        },
        { text: 'Here it is.' },
      ),
    ],
  },
  {
    name: 'code-interpreter',
    agent: (sdk, model) =>
      new sdk.Agent({ name: 'Helper', model, tools: [sdk.codeInterpreterTool()] }),
    script: [
      calls(
        {
          item: {
            type: 'code_interpreter_call',
            status: 'completed',
            container_id: 'c',
            code: 'print("hi")\n',
            outputs: [{ type: 'logs', logs: 'hi' }],
          },
          events: [
            { type: 'response.code_interpreter_call.in_progress' },
            { type: 'response.code_interpreter_call_code.delta', delta: 'print("' },
            { type: 'response.code_interpreter_call_code.delta', delta: 'hi")\n' },
            { type: 'response.code_interpreter_call_code.done', code: 'print("hi")\n' },
            { type: 'response.code_interpreter_call.interpreting' },
            { type: 'response.code_interpreter_call.completed' },
          ],
        },
        { text: 'It says hi.' },
      ),
    ],
  },
  {
    name: 'file-search',
    agent: (sdk, model) =>
      new sdk.Agent({ name: 'Helper', model, tools: [sdk.fileSearchTool(['vs_1'])] }),
    script: [
      calls(
        {
          item: {
            type: 'file_search_call',
            status: 'completed',
            queries: ['terms'],
            results: [
              { file_id: 'file_1', filename: 'terms.pdf', score: 0.9, text: 'Thirty days.' },
            ],
          },
          events: [{ type: 'response.file_search_call.searching' }],
        },
        {
          text: 'Thirty days.',
          citations: [
            { type: 'file_citation', file_id: 'file_1', filename: 'terms.pdf', index: 11 },
          ],
        },
      ),
    ],
  },
  {
    name: 'mcp-call',
    agent: (sdk, model) =>
      new sdk.Agent({ name: 'Helper', model, tools: [hostedMcp(sdk, 'never')] }),
    script: [
      calls(
        {
          item: {
            type: 'mcp_call',
            server_label: 'docs',
            name: 'lookup',
            status: 'completed',
            arguments: '{"q":"a"}',
            output: 'found',
            error: null,
          },
          events: [
            { type: 'response.mcp_call_arguments.delta', delta: '{"q":' },
            { type: 'response.mcp_call_arguments.delta', delta: '"a"}' },
            { type: 'response.mcp_call_arguments.done', arguments: '{"q":"a"}' },
            { type: 'response.mcp_call.completed' },
          ],
        },
        {
          item: {
            type: 'mcp_call',
            server_label: 'docs',
            name: 'lookup',
            status: 'failed',
            arguments: '{}',
            output: null,
            error: 'The server is away.',
          },
        },
        { text: 'Found one.' },
      ),
    ],
  },
  {
    name: 'mcp-approval',
    options: { approvals: true },
    agent: (sdk, model) =>
      new sdk.Agent({ name: 'Helper', model, tools: [hostedMcp(sdk, 'always')] }),
    answers: [{ approved: true }],
    script: [
      calls({
        item: {
          id: 'mcpr_1',
          type: 'mcp_approval_request',
          server_label: 'docs',
          name: 'publish',
          arguments: '{"page":1}',
        },
      }),
      calls(
        {
          item: {
            type: 'mcp_call',
            approval_request_id: 'mcpr_1',
            server_label: 'docs',
            name: 'publish',
            arguments: '{"page":1}',
            status: 'completed',
            output: 'live',
          },
        },
        { text: 'It is live.' },
      ),
    ],
  },
  {
    name: 'mcp-denial',
    options: { approvals: true },
    agent: (sdk, model) =>
      new sdk.Agent({ name: 'Helper', model, tools: [hostedMcp(sdk, 'always')] }),
    answers: [{ approved: false, reason: 'Not today.' }],
    script: [
      calls({
        item: {
          id: 'mcpr_1',
          type: 'mcp_approval_request',
          server_label: 'docs',
          name: 'publish',
          arguments: '{"page":1}',
        },
      }),
      says('Then not.'),
    ],
  },
  {
    name: 'shell',
    agent: (sdk, model) =>
      new sdk.Agent({
        name: 'Helper',
        model,
        tools: [
          sdk.shellTool({
            shell: {
              run: async () => ({
                output: [{ stdout: 'a.txt\n', stderr: '', outcome: { type: 'exit', exitCode: 0 } }],
              }),
            },
          }),
        ],
      }),
    script: [
      calls({
        item: {
          type: 'shell_call',
          call_id: 'sh_1',
          status: 'completed',
          action: { commands: ['ls'], timeout_ms: 1_000, max_output_length: 100 },
        },
      }),
      says('One file.'),
    ],
  },
  {
    name: 'apply-patch',
    agent: (sdk, model) =>
      new sdk.Agent({
        name: 'Helper',
        model,
        tools: [
          sdk.applyPatchTool({
            editor: {
              createFile: async () => ({ status: 'completed', output: 'Created.' }),
              updateFile: async () => ({ status: 'completed' }),
              deleteFile: async () => ({ status: 'failed', output: 'It is not there.' }),
            },
          }),
        ],
      }),
    script: [
      calls(
        {
          item: {
            type: 'apply_patch_call',
            call_id: 'ap_1',
            status: 'completed',
            operation: { type: 'create_file', path: 'a.txt', diff: '+a' },
          },
        },
        {
          item: {
            type: 'apply_patch_call',
            call_id: 'ap_2',
            status: 'completed',
            operation: { type: 'delete_file', path: 'b.txt' },
          },
        },
      ),
      says('One of two.'),
    ],
  },
  {
    name: 'computer',
    agent: (sdk, model) =>
      new sdk.Agent({
        name: 'Helper',
        model,
        tools: [
          sdk.computerTool({
            computer: {
              environment: 'browser',
              dimensions: [10, 10],
              click,
              doubleClick: click,
              drag: click,
              keypress: click,
              move: click,
              scroll: click,
              type: click,
              wait: click,
              screenshot: async () => PIXEL,
            },
          }),
        ],
      }),
    script: [
      calls({
        item: {
          type: 'computer_call',
          call_id: 'cu_1',
          status: 'completed',
          action: { type: 'click', x: 1, y: 2, button: 'left' },
          pending_safety_checks: [],
        },
      }),
      says('Clicked.'),
    ],
  },
];

async function click(): Promise<void> {
  // Nothing is there to be clicked.
}

function hostedMcp(sdk: Sdk, requireApproval: 'never' | 'always') {
  const server = { serverLabel: 'docs', serverUrl: 'https://mcp.example/' };
  return requireApproval === 'never'
    ? sdk.hostedMcpTool(server)
    : sdk.hostedMcpTool({ ...server, requireApproval });
}
