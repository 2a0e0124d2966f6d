import { expect, it } from 'vitest';
import { createPasses } from './passes.ts';

const USER = { id: 'ann', name: 'Ann', expiresAt: 1 };
const WHERE = { sessionId: 's', role: 'collaborator' } as const;

it('a pass names its user and role, without the time at which the sign-in expires', () => {
  const passes = createPasses();
  const { expiresAt: _, ...user } = USER;
  expect(passes.read(passes.of(USER, WHERE), 's')).toEqual({ user, role: 'collaborator' });
});

it('a pass is good for no other session, in no other process, and not when it was changed', () => {
  const passes = createPasses();
  const pass = passes.of(USER, WHERE);
  expect(passes.read(pass, 't')).toBeNull();
  expect(createPasses().read(pass, 's')).toBeNull();
  const [, signature] = pass.slice('pass.'.length).split('.');
  const claims = { user: USER, role: 'owner', sessionId: 's' };
  const forged = Buffer.from(JSON.stringify(claims)).toString('base64url');
  expect(passes.read(`pass.${forged}.${signature}`, 's')).toBeNull();
  for (const token of [undefined, '', 'pass.', 'pass.x.y', passes.runner]) {
    expect(passes.read(token, 's')).toBeNull();
  }
});

it('the pass of runners is good for runners alone', () => {
  const passes = createPasses();
  expect(passes.isRunner(passes.runner)).toBe(true);
  const others = [
    undefined,
    '',
    `${passes.runner}x`,
    passes.of(USER, WHERE),
    createPasses().runner,
  ];
  for (const token of others) expect(passes.isRunner(token)).toBe(false);
});
