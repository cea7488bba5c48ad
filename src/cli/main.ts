#!/usr/bin/env node
import { readFileSync } from 'node:fs';
import yargs from 'yargs';
import { backtraceOptions } from './bt-options.js';
import { doctorOptions } from './doctor-options.js';
import { fail } from './failure.js';
import { futuresOptions } from './futures-options.js';
import { commonOptions, debugFileOptions, last, reconnectOption, recordingOptions, remoteOption } from './options.js';
import { tasksOptions } from './tasks-options.js';
import { usageError } from './usage-error.js';

const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as {
  version: string;
};

// A reader that has gone away (`rsptrace ... | head`) is no error of ours.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') throw error;
});

const parser = yargs(process.argv.slice(2))
  .scriptName('rsptrace')
  .locale('en')
  .parserConfiguration({ 'populate--': true, 'parse-positional-numbers': false })
  .usage('rsptrace: what a Rust kernel or program is doing, and why it waits, through any GDB remote stub')
  .command(
    '$0 <elf>',
    'record every poll at a running stub',
    (args) =>
      reconnectOption(recordingOptions(remoteOption(args))).positional('elf', {
        type: 'string',
        demandOption: true,
        describe: 'The ELF that runs there, with debug info',
      }),
    async (args) => {
      const { recordRemote } = await import('./record.js');
      process.exitCode = await recordRemote(args);
    },
  )
  .command(
    'run <elf>',
    'start QEMU frozen, record every poll, pass its console through',
    (args) =>
      recordingOptions(args)
        .usage('rsptrace run [options] <elf> -- qemu-system-... [its arguments]')
        .positional('elf', { type: 'string', demandOption: true, describe: 'The ELF that runs there, with debug info' })
        .option('console', {
          coerce: last<string>,
          type: 'string',
          requiresArg: true,
          describe: "Keep the guest's console output in this file",
        })
        .option('keep-running', {
          type: 'boolean',
          default: false,
          describe: 'Let QEMU run to its end after --duration, --max-events or SIGTERM',
        }),
    async (args) => {
      const { recordRun } = await import('./run.js');
      process.exitCode = await recordRun({ ...args, command: (args['--'] as string[] | undefined) ?? [] });
    },
  )
  .command(
    'bt <elf>',
    "stop the target, print every hart's stack, let it go on",
    (args) =>
      backtraceOptions(remoteOption(args)).positional('elf', {
        type: 'string',
        demandOption: true,
        describe: 'The ELF that runs there',
      }),
    async (args) => {
      const { backtrace } = await import('./bt.js');
      process.exitCode = await backtrace(args);
    },
  )
  .command(
    'detach <elf>',
    'take out what an rsptrace that was killed has left, let the target run on',
    (args) =>
      commonOptions(remoteOption(args)).positional('elf', {
        type: 'string',
        demandOption: true,
        describe: 'The ELF that runs there',
      }),
    async (args) => {
      const { detach } = await import('./detach.js');
      process.exitCode = await detach(args);
    },
  )
  .command(
    'doctor [elf]',
    'what this stub and its target can do, how fast, and what would make it better',
    (args) => doctorOptions(remoteOption(args)),
    async (args) => {
      const { doctor } = await import('./doctor.js');
      process.exitCode = await doctor(args);
    },
  )
  .command(
    'tasks <elf>',
    'every task and the tree of what it awaits, in a stopped target or a dump',
    tasksOptions,
    async (args) => {
      const { showTasks } = await import('./tasks.js');
      process.exitCode = await showTasks(args);
    },
  )
  .command(
    'types <elf> <type>',
    "print a type's layout: offsets, sizes, holes, an enum's variants",
    (args) =>
      debugFileOptions(args)
        .positional('elf', { type: 'string', demandOption: true, describe: 'A program with debug info' })
        .positional('type', {
          type: 'string',
          demandOption: true,
          describe: 'Its path or the end of it, with generic arguments or without: exec::Task, Vec<u8>',
        })
        .option('json', { type: 'boolean', default: false, describe: 'One JSON object on stdout' }),
    async (args) => {
      const { showTypes } = await import('./types.js');
      process.exitCode = await showTypes(args);
    },
  )
  .command(
    'futures <elf> [glob]',
    'every Future in a program: states, awaits, sizes, polls',
    futuresOptions,
    async (args) => {
      const { showFutures } = await import('./futures.js');
      process.exitCode = await showFutures(args);
    },
  )
  .example('$0 --remote :1234 kernel.elf', 'trace a guest that waits at port 1234')
  .example("$0 --remote :1234 --probe 'poll:net::*' kernel.elf", 'only the Futures of one module')
  .example('$0 run kernel.elf -- qemu-system-riscv64 -M virt -nographic -kernel kernel.elf', 'start QEMU and trace it')
  .epilogue(
    'Exit status: 0 recorded; 1 failed before recording; 2 wrong usage; 3 cut short by an error, what was recorded is kept',
  )
  .version(version)
  .alias('version', 'V')
  .alias('help', 'h')
  .strict()
  .wrap(Math.min(120, process.stdout.columns ?? 120))
  .fail((message, error) => {
    // yargs wraps what option parsing throws; what a command throws comes as it is.
    if (error && error.name !== 'YError') throw error;
    throw usageError(message ?? error.message, process.argv.slice(2));
  });

try {
  await parser.parseAsync();
} catch (error) {
  process.exitCode = fail(error, { json: process.argv.includes('--json') });
}
