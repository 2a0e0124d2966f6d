import type { TurnCommand } from './log.ts';

/** What a turn takes only once: of commands with the same name the first counts. Undefined where each counts. */
export function nameOfCommand(command: TurnCommand): string | undefined {
  if (command.type === 'answer') return nameOfAnswer(command.questionId);
  return command.type === 'steer' ? `steer:${command.id}` : undefined;
}

export function nameOfAnswer(questionId: string): string {
  return `answer:${questionId}`;
}
