// The stacks of harts that stand, and samples made of them.

export { SampledFrames } from './frames.js';
export { type HartStack, hartStack, isSeen, type OtherCode } from './hart-stack.js';
export { LoadedCode, type LoadedCodeOptions } from './loaded-code.js';
export { type HartLook, Looks } from './look.js';
export { Samples, type SampleWishes } from './samples.js';
