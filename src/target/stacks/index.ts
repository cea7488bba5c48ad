// The stacks of harts that stand, and samples made of them.

export { type CodePlace, codePlace, nameIn, programName, SampledFrames } from './frames.js';
export { type HartStack, hartStack, isSeen, type OtherCode } from './hart-stack.js';
export { LoadedCode, type LoadedCodeOptions } from './loaded-code.js';
export { type HartLook, Looks } from './look.js';
export { type OtherProgram, OtherPrograms } from './other-programs.js';
export { Programs } from './programs.js';
export { Samples, type SampleWishes } from './samples.js';
export { type ThreadLook, Threads } from './threads.js';
