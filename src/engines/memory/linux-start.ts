import { basename } from 'node:path';
import { isRefusal } from '../../base/refusal.js';
import { bootImage, qemuOptions } from '../../facts/index.js';

/** The kernel's command line, where a QEMU command starts a bzImage: it is unpacked before it runs, by code that no ELF has. */
export async function linuxStart(command: readonly string[]): Promise<string | undefined> {
  const [program = '', ...args] = command;
  if (!/^qemu-system-x86_64(\.exe)?$/.test(basename(program))) return undefined;
  const options = qemuOptions(args);
  const kernel = options.findLast(({ name }) => name === 'kernel')?.value;
  const image = kernel === undefined ? undefined : await bootImage(kernel);
  if (image === undefined || isRefusal(image) || image.kind !== 'bzimage') return undefined;
  return options.findLast(({ name }) => name === 'append')?.value ?? '';
}
