export const engineNames = ['auto', 'target', 'stop'] as const;
export type EngineName = (typeof engineNames)[number];
