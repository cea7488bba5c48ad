// speedscope's own importer, out of the bundle that its npm package ships. The package exports nothing: the bundle is one function,
// which is made to return its module of importers instead of going on to draw a page.
import { readdirSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { createContext, runInContext } from 'node:vm';

/** What speedscope makes of a thread: its frames are aggregated over the profile by key. */
export interface SpeedscopeProfile {
  getName(): string;
  getTotalWeight(): number;
  forEachFrame(visit: (frame: SpeedscopeFrame) => void): void;
}

export interface SpeedscopeFrame {
  readonly name: string;
  getTotalWeight(): number;
  getSelfWeight(): number;
}

interface Importers {
  importProfileGroupFromText(name: string, text: string): Promise<{ readonly profiles: SpeedscopeProfile[] } | null>;
}

const MODULE =
  /var ([\w$]+)=\{\};[\w$]+\(\1,\{importFromFileSystemDirectoryEntry.*?[;}]var ([\w$]+)=[\w$]+\(\(\)=>\{[^}]*\}\);/s;
const folder = resolve(import.meta.dirname, '../../node_modules/speedscope/dist/release');

const warnings: string[] = [];
let importers: Importers | undefined;

function load(): Importers {
  const file = readdirSync(folder).find((name) => /^speedscope-\w+\.js$/.test(name));
  if (file === undefined) throw new Error(`no bundle in ${folder}`);
  const bundle = readFileSync(join(folder, file), 'utf8');
  // `var A={};B(A,{importFromFileSystemDirectoryEntry:...});` and later `var C=D(()=>{...});`, which makes the module ready.
  const found = MODULE.exec(bundle);
  if (!found) throw new Error(`${file} has no module of importers like that of 1.25.0`);
  const [text, module, ready] = found;
  const warn = (warning: string): void => void warnings.push(warning);
  const console = { log: () => {}, warn, error: warn };
  const context = createContext({ console, TextDecoder, TextEncoder, URL, setTimeout });
  const code = `${bundle.slice(0, found.index + text.length)}${ready}();return ${module}})()`;
  return runInContext(code, context) as Importers;
}

/** A trace as speedscope reads it, with all that it warns of. */
export async function readWithSpeedscope(
  text: string,
): Promise<{ readonly profiles: readonly SpeedscopeProfile[]; readonly warnings: readonly string[] }> {
  warnings.length = 0;
  importers ??= load();
  const group = await importers.importProfileGroupFromText('trace.json', text);
  return { profiles: group?.profiles ?? [], warnings: [...warnings] };
}
