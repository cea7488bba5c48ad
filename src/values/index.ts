export { type DescribedMember, type DescribedType, describeType } from './described-types.js';
export { type MemberExpr, parseMemberExpr } from './member-expr.js';
export { type EvaluationScope, type ExpressionScope, evaluate, evaluateMemberExpr } from './member-expr-eval.js';
export type { Need, Operand } from './member-expr-reads.js';
export { fieldsOf, pick, typeError } from './member-expr-shapes.js';
export { type MemoryNeed, type Missing, ObjectPlace, type PlacePart, Unread, wordBytes } from './object-place.js';
export { type PlainEnum, type PlainValue, plainValue, Unavailable } from './plain.js';
export { brief, formatValue, valueJson } from './print.js';
export { type NamedDie, ProgramNames } from './program-names.js';
export { Shapes } from './program-shapes.js';
export { type ReadOptions, readValue, valueOfBytes } from './reader.js';
export type {
  DynShape,
  EnumShape,
  FieldShape,
  Shape,
  ShapeKind,
  SharedView,
  SliceShape,
  StructShape,
  VariantShape,
  View,
} from './shape.js';
export {
  defaultLimits,
  type FieldValue,
  type PointerStyle,
  type PointerValue,
  type SequenceValue,
  type StructValue,
  textValue,
  type Value,
  type ValueLimits,
  type WrapperValue,
} from './value.js';
export { type KnownMemory, valueText, wordText } from './value-text.js';
export { type FrameAccess, placeOf, staticPlace, Values, type Variable, variablesAt } from './variables.js';
