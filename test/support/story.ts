/**
 * A plug-in with the format `.story`, a line an event as `line`, the text of a function of it, says. When the trace is
 * whole, the records beside it are still there, and are copied to `.kept`.
 */
export const storyPlugin = (line: string): string => `
import { copyFileSync, existsSync } from 'node:fs';
const line = ${line};
export default {
  formats: [{
    name: 'story', extensions: ['.story'], about: 'events', use: 'read it', isAppended: true,
    recognizes: ({ bytes }) => bytes.length > 0,
    open: (file) => ({
      begin: (info) => file.textRecord(info.program + ' ' + info.clock.name + '\\n'),
      event: (event) => file.textRecord(line(event) + '\\n'),
      hart: (hart) => file.textRecord(hart.number + ' is ' + hart.name + '\\n'),
      flush: () => file.flush(),
      end: () => {
        file.close();
        const records = file.path + '.records';
        if (existsSync(records)) copyFileSync(records, file.path + '.kept');
      },
    }),
  }],
};
`;
