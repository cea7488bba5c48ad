import t from 'tap';
import { addr } from '../../src/base/addr.js';
import { silent } from '../../src/base/logger.js';
import { StopWarning } from '../../src/engines/stop-budget.js';
import { stackIsRead } from '../../src/probes/read-plan.js';
import type { ProbeFact } from '../../src/trace/index.js';

const probe = (name: string, engine: ProbeFact['engine'], why?: string): ProbeFact => {
  return { name, address: addr(0x1000n), engine, why };
};

function warnings(stops: number, choices: readonly ProbeFact[]): object[] {
  const said: object[] = [];
  const warning = new StopWarning({ ...silent, warn: (fields: object) => said.push(fields) });
  for (let i = 0; i < stops; i++) warning.stopped(() => choices);
  return said;
}

t.test('a thousand stops beside trampolines are told once, with the probes that make them', (t) => {
  const choices = [
    probe('memcmp', 'stop', 'a branch leads into the patch'),
    probe('work', 'target'),
    probe('level3', 'stop', stackIsRead),
  ];
  t.same(warnings(999, choices), []);
  t.same(warnings(5000, choices), [{ probes: ['memcmp'], more: 0 }]);
  t.same(warnings(5000, choices.slice(1)), [], 'stops that were asked for are not told');
  const many = Array.from({ length: 20 }, (_, i) => probe(`f${i}`, 'stop', 'too short'));
  t.match(warnings(1000, many), [{ probes: ['f0', 'f1', 'f2', 'f3', 'f4', 'f5', 'f6', 'f7'], more: 12 }]);
  t.end();
});
