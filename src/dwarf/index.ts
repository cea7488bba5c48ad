// The DWARF engine: what is where in a program, and what it means. No sockets, no target: files and bytes.

export { CallFrames } from './cfi.js';
export { DW_AT, DW_ATE, DW_DSC, DW_FORM, DW_LANG, DW_TAG, DW_UT } from './constants.js';
export { DebugInfo, debugInfoMissing, type FunctionInfo, type SourcePosition } from './debug-info.js';
export { demangle } from './demangle.js';
export { Die, DieCursor } from './die.js';
export {
  type Answer,
  type Evaluated,
  evaluate,
  evaluateAsync,
  evaluateCfi,
  type Location,
  type Need,
  type Piece,
} from './expr.js';
export { functionName, namedPath } from './function-names.js';
export { inlinedCopies, inlinedInto } from './inlined-copies.js';
export { type LineRow, LineTable } from './line.js';
export type { FileName } from './line-tables.js';
export { type LocationEntry, locationAt, locationsOf, plainRegister, staticAddress, staticCode } from './location.js';
export { type NamedKind, NameIndex } from './name-index.js';
export {
  genericsOf,
  linkageNameOf,
  nameOf,
  originOf,
  parametersOf,
  pathOf,
  qualifiedName,
  stripGenerics,
  through,
  typeOf,
  unpackedChildren,
} from './names.js';
export { DW_OP } from './op-codes.js';
export { type AddressRange, rangesOf } from './ranges.js';
export { type CodePlace, functionsAt, type SourceFunction, scopeAt } from './source-stack.js';
export {
  alignmentOf,
  dimensionsOf,
  elementCount,
  isAlias,
  type Layout,
  layoutOf,
  type Member,
  selectVariant,
  sizeOf,
  typeName,
  type Variant,
  type VariantPart,
  variantName,
} from './types.js';
export { Unit } from './unit.js';
