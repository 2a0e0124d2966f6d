import type { Answer } from './log.ts';

type Agent = { answer(answer: Answer): void; expire(questionId: string): void };

/** What a running turn's open questions come to: an answer, or nobody's. `open` tells until when. */
export function createTurnQuestions(open: Map<string, number>, agent: Agent) {
  const answered = new Set<string>();

  /** Once each: an agent that takes no notice is not waited for. */
  function expire(questionId: string): void {
    open.delete(questionId);
    agent.expire(questionId);
  }

  return {
    /** The first answer wins; one that comes too late is none, also if nobody has noticed yet. */
    answer(answer: Answer): void {
      const { questionId } = answer;
      const expiresAt = open.get(questionId);
      if (expiresAt === undefined || answered.has(questionId)) return;
      if (expiresAt <= Date.now()) {
        expire(questionId);
        return;
      }
      answered.add(questionId);
      agent.answer(answer);
    },
    expireUntil(now: number): void {
      for (const [questionId, expiresAt] of open) {
        if (expiresAt <= now && !answered.has(questionId)) expire(questionId);
      }
    },
    /** Somebody is expected to answer; what was answered is the agent's again. */
    get isAsking(): boolean {
      for (const questionId of open.keys()) if (!answered.has(questionId)) return true;
      return false;
    },
  };
}
