// The DWARF engine: what is where in a program, and what it means. No sockets, no target: files and bytes.
export { awaitChain, type ChainLink, stateOf } from './await-chain.js';
export { type BtfFunction, type BtfValue, btfFunctions, btfMember } from './btf.js';
export { CallFrames } from './cfi.js';
export { type CfiOperands, evaluateCfi } from './cfi-expr.js';
export { type CodeAddress, type CodeSpace, lastNotAbove } from './code-address.js';
export * from './constants.js';
export type { DebugFileOptions } from './debug-file.js';
export { DebugInfo, type FunctionInfo, type SourcePosition } from './debug-info.js';
export { demangle } from './demangle.js';
export { Die, DieCursor } from './die.js';
export { ElfFile, type ElfSection, type ElfSegment, ET, SHT } from './elf.js';
export { type Answer, type Evaluated, evaluate, evaluateAsync, type Location, type Need, type Piece } from './expr.js';
export type { FileName } from './file-names.js';
export { functionName } from './function-names.js';
export type * from './future-types.js';
export { findFutures } from './futures.js';
export { type LineRow, LineTable } from './line.js';
export { type LiveFuture, liveAt, liveFutures, type NextBlock } from './live-futures.js';
export { type LocationEntry, locationAt, locationsOf } from './location.js';
export { type MemberExpr, parseMemberExpr } from './member-expr.js';
export { type ExpressionScope, evaluateMemberExpr, type Operand } from './member-expr-eval.js';
export { type NamedKind, NameIndex } from './name-index.js';
export { linkageNameOf, nameOf, pathOf, qualifiedName, stripGenerics, through } from './names.js';
export { DW_OP } from './op-codes.js';
export { type AddressRange, rangesOf } from './ranges.js';
export type { CodePlace, SourceFunction } from './source-stack.js';
export { staticAddress } from './static-address.js';
export { type ElfSymbol, ElfSymbols } from './symbols.js';
export {
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
export * from './value.js';
export { valueOfBytes } from './value-bytes.js';
export { type DescribedMember, type DescribedType, describeType } from './value-layout.js';
export { type NamedDie, ProgramNames } from './value-names.js';
export { ObjectPlace, type PlacePart } from './value-place.js';
export { formatValue, valueJson } from './value-print.js';
export { type AddressNames, type ReadOptions, readValue } from './value-reader.js';
export type * from './value-shape.js';
export { Shapes } from './value-shapes.js';
export { type FrameAccess, placeOf, type Variable, variablesAt } from './value-variables.js';
export { Values } from './values.js';
