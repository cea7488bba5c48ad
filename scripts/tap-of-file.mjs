// What test files import as 'tap' once they are bundled: the test of the file that runs, because one node runs several.
import { t as root } from 'tap';

export { root as t };

let current = root;

/** From now on `t` is this test. */
export function hold(test) {
  current = test;
}

export default new Proxy(root, {
  get(_, name) {
    const value = current[name];
    return typeof value === 'function' ? value.bind(current) : value;
  },
});
