// What test files import as 'fast-check' once they are bundled. Without this an array with a maxLength of 150 has ten
// elements at most, so that properties of long stories are never tried.
import fc from 'fast-check';

fc.configureGlobal({ defaultSizeToMaxWhenMaxSpecified: true });

/** What fast-check runs where nothing is said. */
const USUAL_RUNS = 100;

/** All runs under `--long`, else the first quarter of them, and all examples: the seed is fixed. */
function assert(property, parameters) {
  const runs = parameters?.numRuns ?? USUAL_RUNS;
  const numRuns = process.env.RSPTRACE_LONG === '1' ? runs : Math.ceil(runs / 4) + (parameters?.examples?.length ?? 0);
  return fc.assert(property, { ...parameters, numRuns });
}

export * from 'fast-check';
export { assert };
export default { ...fc, assert };
