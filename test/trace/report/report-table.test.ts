// `rsptrace report` as people read it.
import t from 'tap';
import { addr } from '../../../src/base/addr.js';
import { reportBy, reportTable, type TraceEvent } from '../../../src/trace/index.js';
import { linked, nanos, tell } from '../stories.js';

t.test('instances of one generic function are told apart by their arguments', async (t) => {
  const instances = ['w::W<blk>', 'w::W<net>', 'w::alone'];
  const events = instances.flatMap((instance, i): TraceEvent[] => {
    const fn = {
      key: i,
      name: instance.replace(/<.*/, ''),
      instance,
      address: addr(16n),
      file: undefined,
      line: undefined,
    };
    const call = { hart: 0, depth: 0, arguments: [], function: fn } as const;
    const began = nanos(i * 10);
    return [
      { type: 'call-begin', time: began, ...call },
      { type: 'call-end', time: nanos(i * 10 + 5), began, ...call },
    ];
  });
  const report = reportBy('fn');
  tell(report, linked(events));
  const table = reportTable(report.rows(), 'function', { color: false, width: 120 });
  for (const instance of instances) t.match(table, new RegExp(` ${instance}$`, 'm'));
});
