import { RsptraceError } from '../../base/errors.js';
import type { DebugInfo } from '../../dwarf/index.js';
import { type MemberExpr, ProgramNames, Shapes } from '../../values/index.js';
import { nearest } from '../glob.js';

/** What member expressions need of a program, for probes and captures of any kind. */
export class ProgramExpressions {
  readonly shapes: Shapes;
  readonly names: ProgramNames;

  constructor(debug: DebugInfo) {
    this.shapes = new Shapes(debug);
    this.names = new ProgramNames(debug);
  }

  hasStatic(name: string): boolean {
    return this.names.statics(name).length > 0;
  }

  /** An error about a static that does not exist, with the names most like it, or else with `otherwise`. */
  withNearest(error: unknown, expression: MemberExpr, otherwise?: string): unknown {
    if (!(error instanceof RsptraceError) || error.code !== 'EXPRESSION_NAME' || error.hint !== undefined) return error;
    const missing = pathsIn(expression).filter((path) => !this.hasStatic(path));
    if (missing.length === 0) return error;
    const known = this.names.staticPaths();
    const near = missing.flatMap((path) => nearest(path, known));
    const hint = near.length > 0 ? `nearest: ${[...new Set(near)].join(', ')}` : otherwise;
    return new RsptraceError(error.code, error.message, { ...(hint ? { hint } : {}), cause: error });
  }
}

/** The name that an expression begins with; undefined where it begins with a number. */
export function rootOf(e: MemberExpr): string | undefined {
  if (e.kind === 'path') return e.path;
  return 'of' in e ? rootOf(e.of) : undefined;
}

function pathsIn(expression: MemberExpr): string[] {
  switch (expression.kind) {
    case 'path':
      return [expression.path];
    case 'number':
      return [];
    case 'index':
      return [...pathsIn(expression.of), ...pathsIn(expression.index)];
    case 'range':
      return [expression.of, expression.from, expression.to].flatMap((part) => (part ? pathsIn(part) : []));
    default:
      return pathsIn(expression.of);
  }
}

/** At a poll a plain name is a member of the Future: `id` is `self.id`. A static's name has a `::`. */
export function ofFuture(e: MemberExpr): MemberExpr {
  if (e.kind === 'index') return { ...e, of: ofFuture(e.of), index: ofFuture(e.index) };
  if ('of' in e) return { ...e, of: ofFuture(e.of) };
  if (e.kind !== 'path' || e.path === 'self' || e.path.includes('::')) return e;
  return { kind: 'member', of: { kind: 'path', path: 'self' }, name: e.path };
}

/** Why a reference that a Future keeps in some of its states is read at a stop alone. */
export const onlyInState = 'only the target knows in which state the Future has that reference';
