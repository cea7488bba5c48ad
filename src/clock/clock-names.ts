/** The clocks that `--clock` names. They are apart from their readers, so that option parsing loads no engine. */
export const clockNames = ['auto', 'time', 'hpet', 'acpi-pm', 'intervals'] as const;
export type ClockName = (typeof clockNames)[number];
