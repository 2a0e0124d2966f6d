/** Stop and answer, from somebody who need not be watching, through whichever gateway it is. */
import type { ChaosTurn } from './turn.ts';
import { pause } from './viewer.ts';

type Verbs = { url: string; signal: AbortSignal };

const RETRY_MS = 100;

/** Says it until somebody has heard it; gives the status. */
async function post(
  { url, signal }: Verbs,
  turn: ChaosTurn,
  { verb, body, isFinal }: { verb: string; body: object; isFinal(status: number): boolean },
): Promise<{ status: number }> {
  const { sessionId, chatId } = turn;
  while (!signal.aborted && !turn.isOver) {
    try {
      const response = await fetch(`${url}/api/sessions/${sessionId}/chat/${chatId}/${verb}`, {
        method: 'POST',
        headers: {
          'content-type': 'application/json',
          connection: 'close',
          'x-viewer': `${turn.plan.turn}.${verb}`,
        },
        body: JSON.stringify(body),
        signal,
      });
      await response.arrayBuffer();
      const { status } = response;
      turn.tell(`somebody says ${verb}: ${status}`);
      if (isFinal(status)) return { status };
    } catch (error) {
      const { cause, message } = error as Error & { cause?: { code?: string } };
      turn.tell(`somebody says ${verb}: ${cause?.code ?? message}`);
    }
    await pause(RETRY_MS, signal);
  }
  return { status: 0 };
}

export async function stopTurn(verbs: Verbs, turn: ChaosTurn): Promise<void> {
  turn.isStopAsked = true;
  const isFinal = (status: number) => status === 202 || status === 204;
  const { status } = await post(verbs, turn, { verb: 'stop', body: {}, isFinal });
  if (status === 202) turn.stoppedAt = Date.now();
}

/** Two at once say different things: one of them counts. */
export async function answerTurn(verbs: Verbs, turn: ChaosTurn, questionId: string): Promise<void> {
  const { isTwice } = turn.plan.answer;
  // 404: the question is on its way to the log.
  const isFinal = (status: number) => [202, 409, 410].includes(status);
  await Promise.all(
    ['port', ...(isTwice ? ['starboard'] : [])].map(async (answer) => {
      const body = { questionId, answer };
      const { status } = await post(verbs, turn, { verb: 'answer', body, isFinal });
      if (status === 202) turn.answersTaken.push(answer);
    }),
  );
}
