import { type Checked, countOf, isBroken } from '../checked.js';
import type { Verdict } from '../section.js';

/** For machines: docs/check.md has the members. */
export function checkedJson(checked: Checked): object {
  return {
    budget: checked.budget ?? null,
    ok: !isBroken(checked),
    kept: countOf(checked, 'kept'),
    broken: countOf(checked, 'broken'),
    unseen: countOf(checked, 'unseen'),
    verdicts: checked.verdicts.map(verdictJson),
  };
}

function verdictJson({ section, subject, state, limit, measured, bound, value, place }: Verdict): object {
  return {
    ...{ section, subject, state, limit, measured },
    bound: bound ?? null,
    value: value ?? null,
    file: place?.file ?? null,
    line: place?.line ?? null,
  };
}
