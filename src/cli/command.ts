import type { Argv } from 'yargs';
import type { MayReport } from './failed-check.js';
import { checkFiles, type FileArguments, refuseExisting } from './files.js';
import type { OptionTexts } from './option-texts.js';

/** Takes a command's body, to be called when the command line is parsed. */
export type Does = (body: () => Promise<number>) => void;

export interface Command {
  /** Its arguments, as yargs has them: `<elf> [glob]`. */
  readonly positionals: string;
  readonly options: (args: Argv, texts: OptionTexts) => Argv<unknown>;
  /** Declares it under a name, `$0` for none. */
  readonly declare: (args: Argv, name: string, texts: OptionTexts, does: Does) => Argv;
}

function hasReports({ junit, markdown, github }: MayReport): boolean {
  return junit !== undefined || markdown !== undefined || github === true;
}

/** `body` is imported when it runs: a command loads what it needs. */
export function command<T extends FileArguments>(
  positionals: string,
  about: string,
  options: (args: Argv, texts: OptionTexts) => Argv<T>,
  body: (args: T & { readonly command: readonly string[] }) => Promise<number>,
): Command {
  return {
    positionals,
    options,
    declare: (args, name, texts, does) =>
      args.command(
        `${name} ${positionals}`,
        about,
        (built) => options(built, texts),
        (given) => {
          const behind = (given as { readonly '--'?: readonly string[] })['--'];
          const all = { ...(given as unknown as T), command: behind ?? [] };
          does(async () => {
            checkFiles(all);
            try {
              refuseExisting(all);
              return await body(all);
            } catch (error) {
              if (hasReports(all)) (await import('./failed-check.js')).reportFailure(all, error);
              throw error;
            }
          });
        },
      ),
  };
}
