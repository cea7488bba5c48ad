/** What a stream says of its terminal. Undefined for a file, and where a terminal says 0, as serial lines do. */
export function sizeOf({ columns, rows }: Partial<Pick<NodeJS.WriteStream, 'columns' | 'rows'>>): {
  readonly columns: number | undefined;
  readonly rows: number | undefined;
} {
  return { columns: columns || undefined, rows: rows || undefined };
}
