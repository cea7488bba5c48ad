import { messageOf, partMissing, RsptraceError } from '../../base/errors.js';

/** Graphviz lays this many out in 5 seconds; the time grows faster than their square. */
const MAX_NODES = 1000;

/**
 * Draws a graph in the DOT language as SVG, by Graphviz in WebAssembly. It is loaded only here, because it is large.
 *
 * @throws RsptraceError `SVG_FAILED`, `PART_MISSING`
 */
export async function graphSvg(dot: string, nodes: number): Promise<string> {
  if (nodes > MAX_NODES) {
    throw new RsptraceError('SVG_FAILED', `a graph of ${nodes} Futures is too large to draw`, {
      hint: 'name some of them with a GLOB, or take --dot and draw it with a program of your choice',
    });
  }
  const { instance } = await import('@viz-js/viz').catch((cause: unknown) => {
    throw partMissing('@viz-js/viz', 'the graph cannot be drawn here, but --dot writes it', cause);
  });
  try {
    return (await instance()).renderString(dot, { format: 'svg', engine: 'dot' });
  } catch (error) {
    throw new RsptraceError('SVG_FAILED', `the graph cannot be drawn: ${messageOf(error)}`, {
      hint: 'take --dot and draw it with another Graphviz',
      cause: error,
    });
  }
}
