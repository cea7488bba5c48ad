import { partMissing, RsptraceError } from '../base/errors.js';

export type LoadedCapstone = typeof import('capstone-wasm');

/**
 * Loads Capstone 5.0 (25 to 40 ms). `module` gets the WebAssembly module: its exports and its heap. Throws
 * `ARCH_DECODER` for another version. `without`: what cannot be done if the package is missing.
 */
export async function loadCapstone(without: string, module: object = {}): Promise<LoadedCapstone> {
  const loaded = await loadInto(without, module);
  const { major, minor } = loaded.Capstone.version();
  if (major === 5 && minor === 0) return loaded;
  throw new RsptraceError('ARCH_DECODER', `Capstone ${major}.${minor} is installed, but only 5.0 is known to work`, {
    hint: 'Install capstone-wasm 1.0.3.',
  });
}

async function loadInto(without: string, module: object): Promise<LoadedCapstone> {
  try {
    const capstone = await import('capstone-wasm');
    await capstone.loadCapstone(module);
    return capstone;
  } catch (cause) {
    throw partMissing('capstone-wasm', without, cause);
  }
}
