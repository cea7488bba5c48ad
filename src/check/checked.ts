import type { Place, Verdict, VerdictState } from './section.js';

/** An error of rsptrace, which is neither the guest's nor a budget's. */
export interface TracerError {
  readonly code: string;
  readonly message: string;
  readonly hint?: string | undefined;
}

/** What a check found, for reports. */
export interface Checked {
  readonly program: string;
  readonly trace: string;
  /** The budget file; undefined where only the guest was judged. */
  readonly budget: string | undefined;
  readonly verdicts: readonly Verdict[];
  /** What could not be checked counts as broken. */
  readonly isStrict: boolean;
  /** It ended the recording early, or there is none. */
  readonly error?: TracerError | undefined;
}

export function isBroken({ verdicts, isStrict }: Checked): boolean {
  return verdicts.some(({ state }) => state === 'broken' || (isStrict && state === 'unseen'));
}

export function countOf({ verdicts }: Checked, state: VerdictState): number {
  return verdicts.filter((verdict) => verdict.state === state).length;
}

/** `12 kept, 1 broken, 2 not seen`. */
export function tallyText(checked: Checked): string {
  const unseen = countOf(checked, 'unseen');
  const parts = [`${countOf(checked, 'kept')} kept`, `${countOf(checked, 'broken')} broken`];
  return [...parts, ...(unseen > 0 ? [`${unseen} not seen`] : [])].join(', ');
}

/** On one line: what failed, and what to do about it. */
export function failureText({ message, hint }: TracerError): string {
  return hint === undefined ? message : `${message}; ${hint}`;
}

/** A path below `folder` without it: a repository's tools know files by these. */
export function relativeFile(file: string, folder: string): string {
  return file.startsWith(`${folder}/`) ? file.slice(folder.length + 1) : file;
}

export function hasFile(place: Place | undefined): place is Place & { readonly file: string } {
  return place?.file !== undefined;
}
