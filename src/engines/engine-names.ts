export const engineNames = ['auto', 'mixed', 'target', 'stop'] as const;
export type EngineName = (typeof engineNames)[number];
