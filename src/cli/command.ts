import type { MayReport } from './check-report.js';
import { type Asked, argumentsOf, valuesOf } from './command-words.js';
import { checkFiles, refuseExisting } from './files.js';
import type { Behind, Declaration, Given, PositionalTable, Table } from './options/option.js';

/** A command: it runs with the words that are given to it. */
export interface Command extends Declaration<PositionalTable, Table> {
  readonly run: (asked: Asked) => Promise<number>;
}

/**
 * `run`: its code is imported when it runs, because a command loads what it needs. `check` throws `USAGE` for options
 * that do not go together.
 */
export function command<P extends PositionalTable, O extends Table>(
  { about, usage, positionals, options }: Declaration<P, O>,
  run: (args: Given<P, O> & { readonly command: readonly string[] }) => Promise<number>,
  check?: (given: Given<P, O> & Behind) => void,
): Command {
  return {
    ...{ about, usage, positionals, options },
    run: async (asked) => {
      const args = { ...argumentsOf(asked, positionals), ...valuesOf(asked.given, options) } as Given<P, O>;
      check?.({ ...args, '--': asked.behind });
      const all: typeof args & MayReport = { ...args, command: asked.behind ?? [] };
      checkFiles(all);
      try {
        refuseExisting(all);
        return await run({ ...args, command: asked.behind ?? [] });
      } catch (error) {
        if (hasReports(all)) (await import('./check-report.js')).reportFailure(all, error);
        throw error;
      }
    },
  };
}

function hasReports({ junit, markdown, github }: MayReport): boolean {
  return junit !== undefined || markdown !== undefined || github === true;
}
