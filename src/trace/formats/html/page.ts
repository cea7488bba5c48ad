/** The page of an HTML report, up to its data. Whoever bundles this file puts it in: scripts/viewer.mjs. */
export const page: string = '';
