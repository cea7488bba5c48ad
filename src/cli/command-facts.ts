// What man pages, shells and files of settings need to know of a command: all of it comes from the options' tables.
import { filled } from './command.js';
import { commandOf } from './command-line.js';
import { listTexts } from './list-texts.js';

/** An option as a person reads of it. */
export interface OptionFacts {
  /** Without dashes. */
  readonly name: string;
  readonly letter: string | undefined;
  /** What stands for its value; undefined for a flag. */
  readonly value: string | undefined;
  /** A flag that is on unless `--no-NAME` is given. */
  readonly isOn: boolean;
  /** Its values, if these are few. */
  readonly choices: readonly string[];
  /** What holds where it is left out, as it would be typed; undefined for flags, and for lists. */
  readonly preset: string | undefined;
  readonly about: string;
}

interface CommandFacts {
  readonly about: string;
  /** Each way to write it. */
  readonly usage: readonly string[];
  readonly positionals: readonly { readonly name: string; readonly about: string }[];
  readonly options: readonly OptionFacts[];
}

const everywhere: readonly OptionFacts[] = [
  { name: 'help', letter: 'h', about: 'Show help' },
  { name: 'version', letter: 'V', about: 'Show version number' },
].map((one) => ({ ...one, value: undefined, isOn: false, choices: [], preset: undefined }));

/** `undefined`: rsptrace without a command. */
export function factsOf(name: string | undefined): CommandFacts {
  const { about, usage, positionals, places, options } = commandOf(name);
  const words = ['rsptrace', ...(name === undefined ? [] : [name]), '[options]', positionals];
  const own = Object.entries(options).map(([option, { type, alias, choices = [], default: preset, describe }]) => {
    const isFlag = type === 'boolean';
    return {
      name: option,
      letter: [alias ?? []].flat().find((one) => one.length === 1),
      value: isFlag ? undefined : option.toUpperCase(),
      isOn: isFlag && preset === true,
      choices: choices.map(String),
      preset: typeof preset === 'string' ? preset : undefined,
      about: filled(describe ?? '', listTexts),
    };
  });
  return {
    about,
    usage: usage?.split('\n').map((line) => line.trim()) ?? [words.join(' ')],
    positionals: Object.entries(places).map(([place, { describe = '' }]) => ({ name: place, about: describe })),
    options: [...own, ...everywhere],
  };
}
