import { expect, it } from 'vitest';
import {
  beginTurn,
  CLOSING,
  FINISHED,
  OPENING,
  request,
  type Suite,
  sleep,
} from './turn-log-helpers.ts';

/** `onBegin`: the log announces the turns of a chat to its listeners. */
export function describeBeginnings({ open }: Suite): void {
  const until = async (isSo: () => boolean) => {
    for (let tries = 0; !isSo() && tries < 500; tries++) await sleep(2);
    expect(isSo()).toBe(true);
  };

  it('of a chat to all its listeners and to no others, once the turn is found', async () => {
    const log = await open();
    const heard: Record<string, (string | undefined)[]> = {
      one: [],
      two: [],
      chat: [],
      session: [],
    };
    const found: Promise<unknown>[] = [];
    log.onBegin('s', 'c', (turnId) => {
      heard.one?.push(turnId);
      if (turnId !== undefined) found.push(log.get(turnId));
    });
    log.onBegin('s', 'c', (turnId) => void heard.two?.push(turnId));
    log.onBegin('s', 'other', (turnId) => void heard.chat?.push(turnId));
    log.onBegin('other', 'c', (turnId) => void heard.session?.push(turnId));
    // Listening may take a while: until then a log says that it may have missed one.
    const probe = await beginTurn(log, request());
    await until(() =>
      Object.values(heard)
        .slice(0, 2)
        .every(({ length }) => length > 0),
    );
    const first = await beginTurn(log, request());
    await first.append([...OPENING, ...CLOSING]);
    await first.close(FINISHED);
    const second = await beginTurn(log, request());
    const ids = [first.turnId, second.turnId];
    const named = (name: string) =>
      heard[name]?.filter((id) => id !== undefined && id !== probe.turnId) ?? [];
    await until(() => named('one').length === 2 && named('two').length === 2);
    expect([named('one'), named('two')]).toEqual([ids, ids]);
    expect([named('chat'), named('session')]).toEqual([[], []]);
    const turns = await Promise.all(found);
    expect(turns.slice(-2)).toMatchObject(ids.map((turnId) => ({ turnId })));
  });

  it('not for a request that attaches to its turn, nor after the subscription has ended', async () => {
    const log = await open();
    const heard: (string | undefined)[] = [];
    const left: (string | undefined)[] = [];
    log.onBegin('s', 'c', (turnId) => void heard.push(turnId));
    const leave = log.onBegin('s', 'c', (turnId) => void left.push(turnId));
    const same = request();
    const { turnId } = await beginTurn(log, same);
    await until(() => heard.length > 0);
    leave();
    const soFar = left.length;
    await log.begin(same);
    const next = await beginTurn(log, request());
    await until(() => heard.at(-1) === next.turnId);
    expect(heard.filter((id) => id === turnId).length).toBeLessThanOrEqual(1);
    expect(left).toHaveLength(soFar);
  });
}
