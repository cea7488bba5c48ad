// Stacks of a stopped hart: three unwinders behind one interface, and the code that picks between them.

export { CodeMap, executable, type FunctionCode } from './code-map.js';
export type { End, EndReason, Frame, FrameRegisters, Hooked, UnwinderName } from './frame.js';
export { type FrameVariable, FrameVariables, type RunningPoll, runningPolls } from './frame-variables.js';
export { codeAt, type SourceFrame, SourceFrames } from './source-frames.js';
export { StackWindow } from './stack-window.js';
export { type Stack, type StackOptions, type StackPiece, Stacks } from './stacks.js';
