// The steps of examples/ci as they stand, in a folder laid out as a kernel's repository. What installs or builds is left out.
import { execFileSync, spawnSync } from 'node:child_process';
import { chmodSync, copyFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import t, { type Test } from 'tap';
import { parse } from 'tap-yaml';
import { elfPath } from './qemu/guests/guests.js';
import { main, scratchFolder } from './support/command.js';
import { long, usually, variant } from './support/long.js';

const examples = join(import.meta.dirname, '../examples/ci');
/** Where cargo puts the kernels, by the beginning of their guests' names. */
const kernels = {
  rv: 'target/riscv64gc-unknown-none-elf/release/kernel',
  x86: 'target/x86_64-unknown-none/release/kernel',
} as const;

/** A repository with both kernels, and `rsptrace` where programs are looked for. */
function repository(t: Test, variant = 'faulty'): { readonly folder: string; readonly env: NodeJS.ProcessEnv } {
  const folder = scratchFolder(t);
  for (const [architecture, path] of Object.entries(kernels)) {
    mkdirSync(join(folder, dirname(path)), { recursive: true });
    copyFileSync(elfPath(`${architecture}-${variant}`), join(folder, path));
  }
  for (const each of ['ci', 'bin']) mkdirSync(join(folder, each));
  copyFileSync(join(examples, 'boot.json'), join(folder, 'ci/boot.json'));
  writeFileSync(join(folder, 'bin/rsptrace'), `#!/bin/sh\nexec '${process.execPath}' '${main}' "$@"\n`);
  chmodSync(join(folder, 'bin/rsptrace'), 0o755);
  return { folder, env: { ...process.env, PATH: `${join(folder, 'bin')}:${process.env.PATH}` } };
}

function run(
  t: Test,
  { folder, env }: ReturnType<typeof repository>,
  step: string,
  more: NodeJS.ProcessEnv = {},
): string {
  const { status, stdout, stderr } = spawnSync('bash', ['-e', '-c', step], {
    cwd: folder,
    env: { ...env, ...more },
    encoding: 'utf8',
    timeout: 300_000,
  });
  t.equal(status, 0, `${step}\n${stdout.slice(-900)}${stderr.slice(-900)}`);
  return stdout;
}

function wordsOf(step: string): readonly string[] {
  return step.replaceAll('\\\n', ' ').trim().split(/\s+/);
}

/** The commands of the GitHub workflow, which boots both kernels. */
function workflowSteps(): readonly string[] {
  const { jobs } = parse(read('github.yml')) as { jobs: { boot: { steps: readonly { run?: string }[] } } };
  return jobs.boot.steps.flatMap(({ run: step }) => (step === undefined || isSetUp(step) ? [] : [step]));
}

/**
 * A boot of another example says nothing that one of the workflow does not: every word is there, in that order. All
 * of them run under `--long`.
 */
function isPartOfWorkflow(t: Test, step: string): void {
  const isPart = workflowSteps().some((whole) => {
    const left = [...wordsOf(whole)];
    // A machine of one's own has the trace of the last boot.
    const words = wordsOf(step).filter((word) => word !== '--force');
    return words.every((word) => left.splice(0, left.indexOf(word) + 1).length > 0);
  });
  t.ok(isPart, step);
}

const isSetUp = (step: string): boolean => /^(sudo |apt-get|npm install|cargo build)/.test(step.trim());
const read = (name: string): string => readFileSync(join(examples, name), 'utf8');

t.test('the GitHub workflow: annotations, a page, JUnit', async (t) => {
  const all = workflowSteps();
  t.equal(all.length, 2);
  const steps = usually(all, (step) => step.includes('riscv64'));
  const place = repository(t);
  const page = join(place.folder, 'page.md');
  const begun = performance.now();
  for (const step of steps)
    run(t, place, step, { GITHUB_ACTIONS: 'true', GITHUB_STEP_SUMMARY: page, GITHUB_WORKSPACE: place.folder });
  t.comment(`${steps.length} checked boots in ${((performance.now() - begun) / 1000).toFixed(1)} s`);
  t.equal(readFileSync(page, 'utf8').match(/^### rsptrace: kernel: \d+ kept, 0 broken/gm)?.length, steps.length);
  for (const name of usually(['riscv64', 'x86_64'], (one) => one === 'riscv64'))
    for (const end of ['xml', 'pftrace.gz']) t.ok(existsSync(join(place.folder, `${name}.${end}`)), `${name}.${end}`);
});

variant(t, 'the GitLab job', async (t) => {
  const { boot } = parse(read('gitlab.yml')) as {
    boot: { before_script: readonly string[]; script: readonly string[] };
  };
  t.ok(boot.before_script.every(isSetUp));
  t.equal(boot.script.length, 2);
  for (const step of boot.script) isPartOfWorkflow(t, step);
  if (!long) return;
  const place = repository(t);
  for (const step of boot.script) run(t, place, step);
  t.ok(existsSync(join(place.folder, 'riscv64.xml')));
});

variant(t, 'the justfile', async (t) => {
  const place = repository(t);
  const steps = read('justfile')
    .split('\n')
    .filter((line) => line.startsWith('    '));
  t.equal(steps.length, 3);
  for (const step of steps) {
    if (step.includes('qemu-')) isPartOfWorkflow(t, step);
    if (long || !step.includes('qemu-system-x86_64')) run(t, place, step.trim());
  }
  t.match(JSON.parse(readFileSync(join(place.folder, 'ci/boot.json'), 'utf8')).times, { 'poll:**': { max: /us$/ } });
});

t.test("cargo's runners", async (t) => {
  // One of the two is not deterministic, and the faulty kernels have 20 ms of their own clock for their work.
  const place = repository(t, 'o2');
  const runners = [...read('config.toml').matchAll(/\[target\.(.*)\]\nrunner = "(.*)"/g)];
  t.equal(runners.length, 2);
  for (const [, target, runner] of usually(runners, ([, target = '']) => target.startsWith('riscv64')))
    run(t, place, `${runner} target/${target}/release/kernel`);
});

t.teardown(() => {
  const left = execFileSync('ps', ['-eo', 'args='], { encoding: 'utf8' })
    .split('\n')
    .filter((line) => line.includes('/release/kernel') && line.startsWith('qemu'));
  if (left.length > 0) throw new Error(`QEMU is left running: ${left[0]}`);
});
