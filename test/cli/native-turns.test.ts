// A function whose first instruction is the head of its loop: a turn is no call, whatever a condition says of it.
import t from 'tap';
import { compileC } from '../support/native.js';
import { recorded } from '../support/native-trace.js';

// It is called 3 times, with a 9, and turns 9 times in each call.
const source = `
volatile long turns;
__attribute__((noipa)) void down(volatile long *p) { do { turns++; (*p)--; } while (*p); }
int main(void) { for (int i = 0; i < 3; i++) { volatile long n = 9; down(&n); } return turns != 27; }
`;

interface Recorded {
  readonly functions: readonly { readonly calls: number }[];
}

for (const engine of ['stop', 'auto'])
  t.test(`a condition is one on calls, engine ${engine}`, async (t) => {
    const program = compileC(t, source, ['-fcf-protection=none']);
    const callsIf = async (number: number) => {
      const probe = `fn:down if *p == ${number}`;
      const { output } = await recorded<Recorded>(t, [program], ['--engine', engine, '-p', probe]);
      return output.functions.map(({ calls }) => calls);
    };
    t.strictSame(await callsIf(5), []);
    t.strictSame(await callsIf(9), [3]);
  });
