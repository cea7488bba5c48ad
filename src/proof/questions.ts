import type { CodePiece } from '../probes/index.js';
import type { Objection, Proof, Question, Replaced, Subject, Way } from './question.js';

/**
 * Everything that is asked before a target is changed for a probe, in this order. A new question is an entry here:
 * nothing else decides.
 */
export const questions: readonly Question[] = [
  {
    name: 'reads',
    forbids: 'probe',
    holds: 'what it reads needs no stop',
    objection: ({ plan }) => plan.needsStop,
  },
  {
    name: 'called',
    forbids: 'probe',
    holds: 'it is entered by calls',
    // A trap may come on a stack that is a user's, or none; a trampoline needs room on it.
    objection: ({ plan, entries }) =>
      plan.insisted === undefined || entries?.isCalled(plan.address)
        ? undefined
        : `${plan.insisted}; no call leads to it, so its stack may be anyone's`,
  },
  {
    name: 'other-probes',
    forbids: 'patch',
    holds: 'no other probe stops there',
    // A breakpoint inside a patch would stop in the middle of the jump; one on a moved instruction would never stop.
    objection: ({ plan, stopsIn }, replaced) =>
      !plan.inside && stopsIn(replaced) ? 'another probe stops in the code that a patch would replace' : undefined,
  },
  {
    name: 'entered',
    forbids: 'patch',
    holds: 'control enters these bytes at the first one only',
    objection: (subject, replaced) => subject.entries?.into(replaced, ownCode(subject)) ?? padInExit(subject, replaced),
  },
  {
    name: 'known-by-address',
    forbids: 'patch',
    holds: 'nothing knows an instruction of them by its address',
    objection: (subject, replaced) => subject.entries?.known(replaced, ownCode(subject)),
  },
  {
    name: 'begins-once',
    forbids: 'patch',
    holds: 'its first instruction begins a call',
    objection: (_, { by }) => (by && 'hookRefused' in by ? by.hookRefused : undefined),
  },
  {
    name: 'stack-arguments',
    forbids: 'hook',
    holds: 'its arguments are in registers',
    objection: ({ plan }) => plan.returnStays,
  },
  {
    name: 'return-address',
    forbids: 'hook',
    holds: 'nothing that its code or its jumps tell of reads its return address',
    objection: ({ plan, entries }) => entries?.looksAtReturn(plan.address),
  },
];

/** The function of a probe at an entry; which one is around a place inside, symbols tell. */
function ownCode({ plan: { inside, address, codeSize: length } }: Subject): CodePiece | undefined {
  return inside ? undefined : { address, length };
}

/** A landing pad lies behind a call or a jump, so none is in the bytes of a start, nor in those of a place inside. */
function padInExit({ plan, facts }: Subject, replaced: Replaced): string | undefined {
  return replaced.by && 'leave' in replaced.by ? facts?.padIn(plan.address, replaced) : undefined;
}

/** The first objection of the questions that forbid this; undefined if there is none. */
export function objectionTo(what: Question['forbids'], subject: Subject, replaced: Replaced): Objection | undefined {
  for (const { name, forbids, objection } of questions) {
    const why = forbids === what ? objection(subject, replaced) : undefined;
    if (why !== undefined) return { question: name, why };
  }
  return undefined;
}

const done: Readonly<Record<Way, string>> = {
  hook: 'its start is patched and its return hooked',
  exits: 'its start and its exits are patched',
  entry: 'its start is patched',
  inside: 'a place inside is patched',
};

const known = new Map<string, Proof>();

/** Nothing has objected to this way. `unhookable`: why the return address stays. */
export function proofOf(way: Way, unhookable?: Objection): Proof {
  const stays = unhookable ? ` (the return address stays: ${unhookable.why})` : '';
  const asked = questions.filter(({ forbids }) => forbids !== 'hook' || way === 'hook');
  const text = `${done[way]}${stays}: ${asked.map(({ holds }) => holds).join(', ')}`;
  const proof = known.get(text) ?? { way, text };
  known.set(text, proof);
  return proof;
}
