// What is known of a program, for people and for other programs: tables, trees, JSON and graphs.
export { type Blame, blameChain, blameOf } from './future-blame.js';
export { type Dependency, dependenciesOf, FutureGraph, type FutureNode } from './future-graph.js';
export { futuresDot } from './futures-dot.js';
export { futuresJson } from './futures-json.js';
export { futuresSizes } from './futures-sizes.js';
export { futuresTable } from './futures-table.js';
export { futuresTree } from './futures-tree.js';
export { graphSvg } from './graph-svg.js';
export { FutureNames, shortType } from './short-names.js';
