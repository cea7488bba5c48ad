import type { Argv } from 'yargs';
import type { MayReport } from './check-report.js';
import { checkFiles, refuseExisting } from './files.js';
import type { ListTexts } from './list-texts.js';
import {
  type Behind,
  type Declaration,
  flag,
  type Given,
  type PositionalTable,
  type SettingsTaken,
  type Table,
} from './options/option.js';

/** Takes a command's body, to be called when the command line is parsed. */
type Does = (body: (settings?: SettingsTaken) => Promise<number>) => void;

/** What every command gets, whatever it declares. */
interface RunWith {
  /** Behind `--`. */
  readonly command: readonly string[];
  readonly settings: SettingsTaken | undefined;
}

const config = flag('Take settings of rsptrace.toml or Cargo.toml; --no-config takes none', { default: true });

export interface Command {
  /** Its arguments, as yargs has them: `<elf> [glob]`. */
  readonly positionals: string;
  readonly options: Table;
  readonly about: string;
  /** Where one line is not enough. */
  readonly usage: string | undefined;
  readonly places: PositionalTable;
  /** Declares it under a name, `$0` for none. `texts`: for help, of the lists that plug-ins can extend. */
  readonly declare: (args: Argv, name: string, does: Does, texts?: ListTexts) => Argv;
}

/**
 * `run`: its code is imported when it runs, because a command loads what it needs. `check` throws `USAGE` for options
 * that do not go together.
 */
export function command<P extends PositionalTable, O extends Table>(
  { about, usage, positionals, options: own }: Declaration<P, O>,
  run: (args: Given<P, O> & RunWith) => Promise<number>,
  check?: (given: Given<P, O> & Behind) => void,
): Command {
  const options = Object.keys(own).length > 0 ? { ...own, config } : own;
  const places = Object.entries(positionals).map(([name, { demandOption, isMany }]) => {
    const shown = isMany ? `${name}..` : besideOption(name, options);
    return demandOption ? `<${shown}>` : `[${shown}]`;
  });
  const declared = (args: Argv, texts: ListTexts | undefined): Argv => {
    for (const [name, option] of Object.entries(options)) {
      args.option(name, { ...option, describe: filled(option.describe ?? '', texts) });
    }
    for (const [name, { isMany: _, ...positional }] of Object.entries(positionals))
      args.positional(besideOption(name, options), positional);
    if (usage !== undefined) args.usage(usage);
    if (check === undefined) return args;
    return args.check((all) => {
      check(withPrograms<Given<P, O>>(all, options));
      return true;
    });
  };
  return {
    positionals: places.join(' '),
    options,
    about,
    usage,
    places: positionals,
    declare: (args, name, does, texts) =>
      args.command(
        [name, ...places].join(' '),
        about,
        (built) => declared(built, texts),
        (parsed) => {
          const behind = (parsed as { readonly '--'?: readonly string[] })['--'];
          const all = { ...withPrograms<Given<P, O> & MayReport>(parsed, options), command: behind ?? [] };
          does(async (settings) => {
            checkFiles(all);
            try {
              refuseExisting(all);
              return await run({ ...all, settings });
            } catch (error) {
              if (hasReports(all)) (await import('./check-report.js')).reportFailure(all, error);
              throw error;
            }
          });
        },
      ),
  };
}

/** With the lists that plug-ins can extend. */
export function filled(describe: string, texts: ListTexts | undefined): string {
  return describe.replace(/\{(\w+)\}/g, (_, list) => texts?.[list as keyof ListTexts] ?? '');
}

/** yargs takes an argument `elf` and an option `--elf` for one: then the argument is `ELF` to it. */
function besideOption(name: string, options: Table): string {
  return name in options ? name.toUpperCase() : name;
}

/** What yargs has parsed, by the names that a command knows. */
function withPrograms<T>(parsed: object, options: Table): T {
  if (!('elf' in options)) return parsed as unknown as T;
  const { ELF: elf, elf: programs, ...rest } = parsed as { readonly ELF?: unknown; readonly elf?: unknown };
  return { ...rest, elf, programs } as unknown as T;
}

function hasReports({ junit, markdown, github }: MayReport): boolean {
  return junit !== undefined || markdown !== undefined || github === true;
}
