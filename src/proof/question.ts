import type { Displaced, FunctionExit, ProbeCode } from '../arch/index.js';
import type { CodeEntries, CodeFacts, CodePiece, ReadPlan } from '../probes/index.js';

/** What is known of a probe's place when a question is asked. */
export interface Subject {
  readonly plan: ReadPlan;
  readonly probeCode: ProbeCode;
  /** Undefined if the code changes as it runs, or if nothing is known of it. */
  readonly facts: CodeFacts | undefined;
  /** Where control may come into the text; undefined if no ELF says. */
  readonly entries: CodeEntries | undefined;
  /** Whether a probe that needs a stop lies in these bytes, behind the first one. */
  readonly stopsIn: (piece: CodePiece) => boolean;
}

/** Whole instructions that a patch replaces, so that they are run elsewhere. */
export interface Replaced extends CodePiece {
  /** Undefined where nothing is replaced yet. */
  readonly by?: Displaced | FunctionExit;
}

/**
 * Something that must be proven before the target is changed for a probe. What an objection forbids:
 *
 *     probe   anything: the target stops, or the probe is left out
 *     patch   replacing these instructions, at the start, at an exit, or inside; `replaced` is given
 *     hook    another return address: exits are patched, or the target stops
 */
export interface Question {
  /** Stable, for programs. */
  readonly name: string;
  readonly forbids: 'probe' | 'patch' | 'hook';
  /** What is known if there is no objection, as the end of a sentence. */
  readonly holds: string;
  /** Why it is not proven, in words for the user. */
  objection(subject: Subject, replaced: Replaced): string | undefined;
}

/** What a question found. */
export interface Objection {
  readonly question: string;
  readonly why: string;
}

/** How a probe is carried out without stops: what is replaced, and how returns are seen. */
export type Way = 'hook' | 'exits' | 'entry' | 'inside';

/** What was asked about one probe, and what came of it. */
export interface Proof {
  readonly way: Way;
  /** One sentence: what is done, and what is known that allows it. */
  readonly text: string;
}
