// A thread of `scripts/kills`: requests one after the other over each of some connections, to a server that may stand or go meanwhile. Counts the answers.
import { connect } from 'node:net';
import { workerData } from 'node:worker_threads';

const { port, request, answer, connections, counts } = workerData;
const answers = new BigInt64Array(counts);
/** How long it waits before it connects again, in milliseconds. */
const againMs = 20;

function one() {
  const socket = connect(port, '127.0.0.1', () => socket.write(request));
  let text = '';
  socket.setEncoding('latin1').on('data', (piece) => {
    text += piece;
    if (!text.includes(answer)) return;
    text = '';
    Atomics.add(answers, 0, 1n);
    socket.write(request);
  });
  socket.on('error', () => {});
  socket.on('close', () => setTimeout(one, againMs));
}
for (let each = 0; each < connections; each++) one();
