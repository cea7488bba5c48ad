/** A hart, as the stub calls it. */
interface HartCalled {
  readonly id: string;
  readonly name?: string | undefined;
}

/**
 * The stub's name for a hart, without its present activity: QEMU says `CPU#0 [running]`. Of a process the thread's
 * number in the system: `thread 1234 (worker)`.
 */
export function hartName({ id, name }: HartCalled, isProcess: boolean): string {
  if (!isProcess) return name?.replace(/\s*\[.*\]$/, '') || `hart ${id}`;
  const thread = /^(?:p[0-9a-f]+\.)?([0-9a-f]+)$/i.exec(id)?.[1];
  const number = thread === undefined ? id : Number.parseInt(thread, 16);
  return `thread ${number}${name ? ` (${name})` : ''}`;
}
