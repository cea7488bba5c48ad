// The committed aarch64 guests through the real command: the trace's polls against the guest's own counts.
import t from 'tap';
import { testCounts } from '../support/polls.js';

testCounts(t, 'aarch64');
