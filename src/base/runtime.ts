import { RsptraceError } from './errors.js';

/** What else runs JavaScript: its name in `process.versions`, and for people. */
const others = { bun: 'Bun', deno: 'Deno' } as const;

/**
 * Bun 1.4 hangs in a recording, and Deno 2.9 fails in one: parts of Node that rsptrace uses are not there, or differ.
 *
 * @throws RsptraceError `NODE_NEEDED`
 */
export function verifyRuntime(versions: Readonly<Record<string, string | undefined>> = process.versions): void {
  for (const [key, name] of Object.entries(others)) {
    const version = versions[key];
    if (version === undefined) continue;
    throw new RsptraceError('NODE_NEEDED', `rsptrace runs on Node alone, and this is ${name} ${version}`, {
      hint: 'install Node 20.19 or later, and start rsptrace with it',
    });
  }
}
