import { RsptraceError } from '../base/errors.js';
import { editDistance, nearestWords } from '../base/search.js';

/**
 * Globs over Rust paths. `*` stands for any characters within one path segment, `**` for any characters at all, `?`
 * for one. A glob matches a whole path or any tail of it that begins at a segment: `level3` matches
 * `labkern::work::level3`, as gdb's `break level3` would.
 */
export function compileGlob(glob: string): (path: string) => boolean {
  let source = '';
  for (let i = 0; i < glob.length; i++) {
    const c = glob[i] as string;
    if (c === '*') {
      if (glob[i + 1] === '*') {
        source += '.*';
        i++;
      } else {
        // A single colon never occurs in a Rust path: to refuse one is to refuse `::`.
        source += '[^:]*';
      }
    } else if (c === '?') source += '[^:]';
    else source += c.replace(/[\\^$.*+?()[\]{}|/]/, '\\$&');
  }
  const pattern = new RegExp(`^(?:.*::)?${source}$`, 's');
  return (path) => pattern.test(path);
}

/**
 * The names nearest to the given one, by edit distance of their last segments, for "did you mean"; the nearest modules
 * for all of one, `a::b::*`.
 */
export function nearest(wanted: string, names: Iterable<string>): string[] {
  const [, module] = /^([^*]+)::\*+$/.exec(wanted) ?? [];
  if (module !== undefined) {
    const length = module.split('::').length;
    const modules = [...names].map((name) => name.split('::').slice(0, -1).slice(-length).join('::'));
    return nearestWords(module, modules).map((one) => `${one}::*`);
  }
  const tail = lastSegment(wanted.replaceAll('*', ''));
  const most = Math.max(3, tail.length / 2);
  const scored: { name: string; distance: number }[] = [];
  for (const name of new Set(names)) {
    const candidate = lastSegment(name);
    const contains = tail.length > 2 && candidate.includes(tail);
    // It is at least the difference of their lengths.
    const mayBe = Math.abs(candidate.length - tail.length) <= most;
    const distance = contains ? 0.5 : mayBe ? editDistance(tail, candidate) : Number.POSITIVE_INFINITY;
    if (distance <= most) scored.push({ name, distance });
  }
  scored.sort((a, b) => a.distance - b.distance || (a.name < b.name ? -1 : 1));
  return scored.slice(0, 3).map(({ name }) => name);
}

/** That globs match nothing: with the names nearest to them, else with `otherwise`. */
export function noMatch(
  what: string,
  specs: readonly { readonly glob: string; readonly text: string }[],
  names: readonly string[],
  otherwise: string,
): RsptraceError {
  const near = new Set(specs.flatMap(({ glob }) => nearest(glob, names)));
  const wanted = specs.map(({ text }) => `'${text}'`).join(', ');
  return new RsptraceError('PROBE_NO_MATCH', `no ${what} matches ${wanted}`, {
    hint: near.size > 0 ? `nearest: ${[...near].slice(0, 4).join(', ')}` : otherwise,
  });
}

function lastSegment(path: string): string {
  return path.slice(path.lastIndexOf('::') + 1).replace(/^:/, '');
}
