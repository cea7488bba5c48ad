// Apart from what chooses one: the command line has these words, and loads no engine for them.
export const engineNames = ['auto', 'mixed', 'target', 'stop'] as const;
export type EngineName = (typeof engineNames)[number];
