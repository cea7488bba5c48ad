import type { MemberExpr } from '../../values/index.js';

/** At a poll a plain name is a member of the Future: `id` is `self.id`. A static's name has a `::`. */
export function ofFuture(e: MemberExpr): MemberExpr {
  if (e.kind === 'index') return { ...e, of: ofFuture(e.of), index: ofFuture(e.index) };
  if ('of' in e) return { ...e, of: ofFuture(e.of) };
  if (e.kind !== 'path' || e.path === 'self' || e.path.includes('::')) return e;
  return { kind: 'member', of: { kind: 'path', path: 'self' }, name: e.path };
}

/** Why a reference that a Future keeps in some of its states is read at a stop alone. */
export const onlyInState = 'only the target knows in which state the Future has that reference';
