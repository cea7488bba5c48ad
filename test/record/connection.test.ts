// What is counted over all links of a recording, one after the other.
import t from 'tap';
import { Connection } from '../../src/record/connection.js';

type Link = Parameters<Connection['open']>[0];
type Stops = [string, number][];

/** A link with these counts, as its engine and its session give them. */
function link(stops: Stops, wasHit: boolean, allMs: number, longestMs: number): Link {
  const engine = {
    ...{ stops: 3, wasHit, runningTime: () => 1000, foreignHits: new Map([[0x1000n, 2]]) },
    others: { stops: new Map(stops), untold: 1 },
  };
  return { engine, session: { standing: { allMs, longestMs, nowMs: 5 } }, watches: {} } as unknown as Link;
}

t.test('a link that is opened again loses nothing of what the one before has counted', (t) => {
  const connection = new Connection();
  connection.open(link([['shell', 4]], true, 30, 20));
  connection.open(link([['init', 1]], false, 10, 5));
  connection.open(link([['shell', 2]], false, 1, 1));
  t.equal(connection.wasHit, true, 'in the first of them');
  t.strictSame(
    connection.others?.stops as unknown,
    new Map([
      ['shell', 6],
      ['init', 1],
    ]),
  );
  t.equal(connection.others?.untold, 3);
  t.strictSame(connection.standing, { allMs: 41, longestMs: 20 });
  t.strictSame([connection.stops, connection.ranNs, connection.foreignHits.get(0x1000n)], [9, 3000, 6]);
  t.end();
});
