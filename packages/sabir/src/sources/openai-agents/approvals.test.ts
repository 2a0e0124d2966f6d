import { describe, expect, it } from 'vitest';
import { toDecision } from '../../core/decision.ts';

describe('what an answer means', () => {
  it.each(['Approve', 'approved', 'allow', 'Allowed', 'yes', 'YES!', ' ok. ', 'true', true])(
    'is a yes: %s',
    (answer) => expect(toDecision(answer)).toEqual({ approved: true }),
  );

  it.each(['Deny', 'denied', 'no', 'No.', 'false', '', '  ', false, null, undefined, 1, ['yes']])(
    'is a no: %s',
    (answer) => expect(toDecision(answer)).toEqual({ approved: false }),
  );

  it('takes a sentence for a no, and for its reason', () => {
    expect(toDecision(' Not on a Friday. ')).toEqual({
      approved: false,
      reason: 'Not on a Friday.',
    });
    expect(toDecision('yes, but not that one')).toMatchObject({ approved: false });
  });

  it('takes what a client says of an approval, where only true is a yes', () => {
    expect(toDecision({ approved: true, reason: 'Fine.' })).toEqual({
      approved: true,
      reason: 'Fine.',
    });
    expect(toDecision({ approved: false, reason: '' })).toEqual({ approved: false });
    expect(toDecision({ approved: 'true', reason: 5 })).toEqual({ approved: false });
  });
});
