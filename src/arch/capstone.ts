import { randomUUID } from 'node:crypto';
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';
import { partMissing, RsptraceError } from '../base/errors.js';

export type LoadedCapstone = typeof import('capstone-wasm');

/** The WebAssembly module: its exports and its heap. */
export const capstoneModule: object = {};

/**
 * Loads Capstone 5.0 (25 to 40 ms), into {@link capstoneModule}. Throws `ARCH_DECODER` for another version. `without`:
 * what cannot be done if the package is missing.
 */
export async function loadCapstone(without: string): Promise<LoadedCapstone> {
  const loaded = await loadOnce(without);
  const { major, minor } = loaded.Capstone.version();
  if (major === 5 && minor === 0) return loaded;
  throw new RsptraceError('ARCH_DECODER', `Capstone ${major}.${minor} is installed, but only 5.0 is known to work`, {
    hint: 'Install capstone-wasm 1.0.3.',
  });
}

let loading: Promise<LoadedCapstone> | undefined;

async function loadOnce(without: string): Promise<LoadedCapstone> {
  try {
    loading ??= load();
    return await loading;
  } catch (cause) {
    throw partMissing('capstone-wasm', without, cause);
  }
}

/**
 * The package makes one WebAssembly module and gives it to whoever asks first, so that another user of it in this
 * process would have it alone. Under an address of its own Node loads the package once more.
 */
async function load(): Promise<LoadedCapstone> {
  const installed = pathToFileURL(createRequire(import.meta.url).resolve('capstone-wasm'));
  const capstone: LoadedCapstone = await import(new URL(`index.mjs?${randomUUID()}`, installed).href);
  await capstone.loadCapstone(capstoneModule);
  return capstone;
}
