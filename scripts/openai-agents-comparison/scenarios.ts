/**
 * The runs that are compared: agents of the OpenAI Agents SDK, and what their model says. All of it
 * is the SDK's own but the network: the model's answers are written down here.
 */
import type { Script } from '../../packages/sabir/test/openai-agents/scripted-model.ts';
import { SDKS, type Sdk } from '../../packages/sabir/test/openai-agents/sdks.ts';

const [newest] = SDKS;
if (!newest) throw new Error('There is no release of the SDK to run.');
export const sdk: Sdk = newest.sdk;

type Agent = InstanceType<Sdk['Agent']>;
type Model = InstanceType<Sdk['OpenAIResponsesModel']>;
type AgentSettings = Omit<ConstructorParameters<Sdk['Agent']>[0], 'name' | 'model'>;

export type Scenario = {
  script: Script;
  agent: (model: Model) => Agent;
  /** What happens to the model's answers on their way. */
  onModel?: (model: Model) => Model;
  runOptions?: { maxTurns?: number };
  /** What the person says when asked for an approval. */
  answer?: { approved: boolean; reason?: string };
};

export const CITY = { city: 'Paris, the one in France' };
export const WEATHER = 'Sunny, 21 degrees.';
export const ANSWER = 'It is sunny in Paris, and it will stay so.';
export const PAGE = { url: 'https://weather.example/paris', title: 'Weather in Paris' };
export const QUERY = 'weather in Paris';
export const THOUGHTS = ['The person wants the weather.', 'Paris is in France.'];
export const REFUSAL = 'I cannot help with that.';
export const SECOND_AGENT = 'Billing';
export const IMAGE = 'data:image/png;base64,iVBORw0KGgo=';
/** One response costs 15 tokens. */
export const TOKENS_OF_TWO_RESPONSES = 30;

type ToolSettings = {
  execute?: (input: unknown) => unknown;
  timeoutMs?: number;
  needsApproval?: boolean;
};

function weatherTool({ execute = () => WEATHER, ...settings }: ToolSettings = {}) {
  return sdk.tool({
    name: 'weather',
    description: 'The weather in a city.',
    parameters: {
      type: 'object',
      properties: { city: { type: 'string' } },
      required: ['city'],
      additionalProperties: true,
    },
    strict: false,
    execute: async (input) => execute(input),
    ...settings,
  });
}

function agentWith(settings: AgentSettings = {}): Scenario['agent'] {
  return (model) => new sdk.Agent({ name: 'Assistant', ...settings, model });
}

const askWeather = (callId: string, input: object = CITY) => ({ call: 'weather', callId, input });
const SAYS_ANSWER = { outputs: [{ text: ANSWER }] };
const ASKS_THEN_SAYS: Script = [{ outputs: [askWeather('call_a')] }, SAYS_ANSWER];

function weatherScenario(settings?: ToolSettings): Scenario {
  return { script: ASKS_THEN_SAYS, agent: agentWith({ tools: [weatherTool(settings)] }) };
}

export const TOOL_CALL = weatherScenario();

export const PARALLEL_CALLS: Scenario = {
  script: [
    { outputs: [askWeather('call_a', { city: 'Paris' }), askWeather('call_b', { city: 'Rome' })] },
    SAYS_ANSWER,
  ],
  agent: agentWith({
    tools: [weatherTool({ execute: (input) => `Sunny in ${(input as { city: string }).city}.` })],
  }),
};

export const TOOL_THROWS = weatherScenario({
  execute: () => {
    throw new Error('The service is down.');
  },
});

export const TOOL_TIMES_OUT = weatherScenario({
  execute: () => Promise.withResolvers<never>().promise,
  timeoutMs: 20,
});

export const TOOL_GIVES_IMAGE = weatherScenario({
  execute: () => ({ type: 'image', image: IMAGE }),
});

export const REASONING: Scenario = {
  script: [{ outputs: [{ reasoning: THOUGHTS }, { text: ANSWER }] }],
  agent: agentWith(),
};

export const CITATIONS: Scenario = {
  script: [
    {
      outputs: [
        {
          text: ANSWER,
          citations: [{ type: 'url_citation', ...PAGE, start_index: 0, end_index: 20 }],
        },
      ],
    },
  ],
  agent: agentWith(),
};

export const WEB_SEARCH: Scenario = {
  script: [
    {
      outputs: [
        {
          item: {
            type: 'web_search_call',
            status: 'completed',
            action: { type: 'search', query: QUERY, sources: [{ type: 'url', url: PAGE.url }] },
          },
          events: [
            { type: 'response.web_search_call.in_progress' },
            { type: 'response.web_search_call.searching' },
            { type: 'response.web_search_call.completed' },
          ],
        },
        { text: ANSWER },
      ],
    },
  ],
  agent: agentWith({ tools: [sdk.webSearchTool()] }),
};

export const HANDOFF: Scenario = {
  script: [{ outputs: [{ call: `transfer_to_${SECOND_AGENT}` }] }, SAYS_ANSWER],
  agent: (model) => {
    const second = new sdk.Agent({ name: SECOND_AGENT, model });
    return agentWith({ handoffs: [second] })(model);
  },
};

export const REFUSES: Scenario = {
  script: [{ outputs: [{ refusal: REFUSAL }] }],
  agent: agentWith(),
};

export const CUT_BY_LENGTH: Scenario = {
  script: [{ outputs: [{ text: ANSWER }], incomplete: 'max_output_tokens' }],
  agent: agentWith(),
};

export const CUT_BY_FILTER: Scenario = {
  script: [{ outputs: [{ text: ANSWER }], incomplete: 'content_filter' }],
  agent: agentWith(),
};

export const TOO_MANY_TURNS: Scenario = { ...TOOL_CALL, runOptions: { maxTurns: 1 } };

export const INPUT_GUARDRAIL: Scenario = {
  script: [SAYS_ANSWER],
  agent: agentWith({
    inputGuardrails: [
      {
        name: 'Nothing goes through',
        execute: async () => ({ tripwireTriggered: true, outputInfo: {} }),
      },
    ],
  }),
};

/** The connection to the model drops when some of the text has come. */
export const MODEL_BREAKS: Scenario = {
  script: [SAYS_ANSWER],
  agent: agentWith(),
  onModel(model) {
    const whole = model.getStreamedResponse.bind(model);
    model.getStreamedResponse = async function* (request) {
      let deltas = 0;
      for await (const event of whole(request)) {
        yield event;
        if (event.type === 'output_text_delta' && ++deltas === 2) throw new Error('Socket closed.');
      }
    };
    return model;
  },
};

const needsApproval = weatherScenario({ needsApproval: true });

export const APPROVAL: Scenario = { ...needsApproval, answer: { approved: true } };

export const DENIAL: Scenario = {
  ...needsApproval,
  answer: { approved: false, reason: 'Not today.' },
};
