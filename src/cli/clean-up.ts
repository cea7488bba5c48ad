// Run by the supervisor of a gdbserver, whose rsptrace has been killed. Its one argument: a word of that.
import { serverOf, takeOverServer } from '../api/index.js';
import { messageOf } from '../base/errors.js';
import { note } from './standard-error.js';
import { takenOutText } from './taken-out.js';

try {
  const server = await serverOf(process.argv[2] ?? '');
  const taken = server === undefined ? undefined : await takeOverServer(server);
  if (taken) note(`it was killed. ${takenOutText(taken)}`);
} catch (thrown) {
  note(`it was killed, and its gdbserver could not be left in order: ${messageOf(thrown)}`);
}
